#include "erasure/storage_api.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/digest.h"

#define URL_MAX 4096
#define BODY_MAX ((size_t)1024 * 1024) /* a page of names that are as long as they may be, escaped */

static char *line(const char *name, const char *value)
{
    char *made = NULL;
    return asprintf(&made, "%s%s", name, value) < 0 ? NULL : made;
}

/* A secret key is no token. Supabase's gateway takes it as a bearer where it is the same as apikey, as its own clients send it. */
enum err storage_api_open(struct storage_api *api, const char *url, const char *key)
{
    *api = (struct storage_api){.url = url ? line(url, "") : NULL};
    if (!url)
        return OK;
    api->authorization = line("Authorization: Bearer ", key);
    api->apikey = line("apikey: ", key);
    if (!api->url || !api->authorization || !api->apikey)
        return ERR_MEMORY;
    for (size_t len = strlen(api->url); len > 0 && api->url[len - 1] == '/'; len--)
        api->url[len - 1] = 0;
    api->headers[0] = api->authorization;
    api->headers[1] = api->apikey;
    api->headers[2] = "Content-Type: application/json";
    return OK;
}

static void wipe(char *text)
{
    if (text)
        secret_wipe(text, strlen(text));
    free(text);
}

void storage_api_close(struct storage_api *api)
{
    wipe(api->authorization);
    wipe(api->apikey);
    free(api->url);
    *api = (struct storage_api){0};
}

void storage_request_free(struct storage_request *request)
{
    buf_free(&request->url);
    buf_free(&request->body);
}

static void add_escaped(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        if (isalnum(c) || c == '-' || c == '_' || c == '.' || c == '~')
            buf_add(out, (struct str){text.at + i, 1});
        else
            buf_addf(out, "%%%02X", c);
    }
}

static void begin_request(const struct storage_api *api, struct storage_request *request, const char *path,
                          struct str bucket)
{
    storage_request_free(request);
    request->url = buf_new(URL_MAX);
    request->body = buf_new(BODY_MAX);
    buf_addf(&request->url, "%s%s", api->url, path);
    add_escaped(&request->url, bucket);
}

static void send_request(const struct storage_api *api, struct client *client, struct storage_request *request,
                         const char *method, void (*done)(struct client_call *call))
{
    struct str url = buf_str(&request->url), body = buf_str(&request->body);
    bool whole = url.at && !request->body.failed; /* without memory an empty URL makes the request fail */
    request->call = (struct client_call){.url = whole ? url.at : "",
                                         .headers = api->headers,
                                         .method = method,
                                         .body = body.len ? body : (struct str){NULL, 0},
                                         .answer_max = BODY_MAX,
                                         .limit_ns = STORAGE_CALL_NS,
                                         .done = done};
    client_send(client, &request->call);
}

void storage_ask_bucket(const struct storage_api *api, struct client *client, struct storage_request *request,
                        struct str bucket, void (*done)(struct client_call *call))
{
    begin_request(api, request, "/bucket/", bucket);
    send_request(api, client, request, "GET", done);
}

void storage_list(const struct storage_api *api, struct client *client, struct storage_request *request,
                  struct str bucket, struct str folder, int64_t offset, void (*done)(struct client_call *call))
{
    begin_request(api, request, "/object/list/", bucket);
    struct json_writer w = json_to(&request->body);
    json_open(&w, '{');
    json_key(&w, "prefix");
    json_str(&w, folder);
    json_key(&w, "limit");
    json_i64(&w, STORAGE_PAGE);
    json_key(&w, "offset");
    json_i64(&w, offset);
    json_key(&w, "sortBy");
    json_raw(&w, STR("{\"column\":\"name\",\"order\":\"asc\"}"));
    json_close(&w, '}');
    send_request(api, client, request, "POST", done);
}

void storage_delete(const struct storage_api *api, struct client *client, struct storage_request *request,
                    struct str bucket, const struct str *names, size_t count, void (*done)(struct client_call *call))
{
    begin_request(api, request, "/object/", bucket);
    struct json_writer w = json_to(&request->body);
    json_open(&w, '{');
    json_key(&w, "prefixes");
    json_open(&w, '[');
    for (size_t i = 0; i < count; i++)
        json_str(&w, names[i]);
    json_close(&w, ']');
    json_close(&w, '}');
    send_request(api, client, request, "DELETE", done);
}

/* Older releases answer most errors with 400, and have the status in the body: {"statusCode":"404",…}. */
static int status_of(const struct client_call *call, bool *ret_is_storage)
{
    AUTO(json) json_t *body = json_read_object(call->answer, NULL);
    struct str status;
    int64_t number;
    *ret_is_storage = body && (json_object_get(body, "statusCode") || json_object_get(body, "error") ||
                               json_object_get(body, "code"));
    if (call->status == 400 && body && !json_get_str(body, "statusCode", &status) &&
        !str_to_i64(status, 400, 599, &number))
        return (int)number;
    return call->status;
}

bool storage_failed(const struct client_call *call, struct str bucket, struct storage_trouble *ret)
{
    char *into = ret->words;
    size_t size = sizeof ret->words;
    bool is_storage;
    if (call->err) {
        (void)snprintf(into, size, "the Storage API cannot be reached at RECLAIM_STORAGE_URL (%s)",
                       err_name(call->err));
        return true;
    }
    int status = status_of(call, &is_storage);
    if (status == 200)
        return false;
    if (status == 401 || status == 403)
        (void)snprintf(into, size,
                       "the Storage API refuses RECLAIM_STORAGE_KEY (%d): it must be the project's secret or "
                       "service_role key",
                       status);
    else if (status == 404 && is_storage)
        (void)snprintf(into, size,
                       "there is no bucket %.*s, or RECLAIM_STORAGE_KEY is not the secret key of its project",
                       (int)(bucket.len < 64 ? bucket.len : 64), bucket.at);
    else if (status == 404)
        (void)snprintf(into, size,
                       "no Storage API is at RECLAIM_STORAGE_URL (404): on Supabase it ends in /storage/v1");
    else
        (void)snprintf(into, size, "the Storage API answers %d; it is asked again", status);
    return true;
}

struct bucket_check {
    struct storage_request request;
    struct str bucket;
    bool done, failed;
    struct storage_trouble *trouble;
};

static void bucket_answered(struct client_call *call)
{
    struct bucket_check *c = OWNER_OF(OWNER_OF(call, struct storage_request, call), struct bucket_check, request);
    c->failed = storage_failed(call, c->bucket, c->trouble);
    c->done = true;
}

enum err storage_check_bucket(const struct storage_api *api, struct str bucket, int64_t deadline_ns,
                              struct storage_trouble *ret)
{
    struct client *client = client_new(&(struct client_config){.connections_max = 1});
    struct bucket_check c = {.bucket = bucket, .trouble = ret};
    if (!client)
        return ERR_MEMORY;
    storage_ask_bucket(api, client, &c.request, bucket, bucket_answered);
    while (!c.done)
        client_turn(client, deadline_ns);
    client_free(client);
    storage_request_free(&c.request);
    return c.failed ? ERR_CLOSED : OK;
}
