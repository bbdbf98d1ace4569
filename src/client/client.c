#include "client/client.h"

#include <curl/curl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/ip.h"

#define TURN_MAX_MS 1000
#define USER_AGENT "reclaim/" RECLAIM_VERSION

struct client {
    struct client_config config;
    CURLM *multi;
    struct client_call *first; /* running */
    size_t failed_to_start;    /* calls that failed to start; completed by the next client_turn() */
};

/* libcurl's buffers hold copies of requests, with keys, addresses and codes. */
static void wiping_free(void *at)
{
    if (at)
        secret_wipe(at, malloc_usable_size(at));
    free(at);
}

static void *wiping_realloc(void *at, size_t size)
{
    void *grown = malloc(size);
    if (!grown || !at)
        return grown;
    size_t old = malloc_usable_size(at);
    memcpy(grown, at, old < size ? old : size);
    wiping_free(at);
    return grown;
}

static CURLcode init_result = CURLE_FAILED_INIT;

static void init_curl(void)
{
    init_result = curl_global_init_mem(CURL_GLOBAL_DEFAULT, malloc, wiping_free, wiping_realloc, strdup, calloc);
}

struct client *client_new(const struct client_config *config)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, init_curl);
    struct client *c = calloc(1, sizeof *c);
    if (init_result || !c) {
        free(c);
        return NULL;
    }
    c->config = *config;
    c->multi = curl_multi_init();
    if (!c->multi || curl_multi_setopt(c->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)config->connections_max)) {
        client_free(c);
        return NULL;
    }
    return c;
}

void client_free(struct client *c)
{
    if (!c)
        return;
    while (c->first)
        client_cancel(c, c->first);
    curl_multi_cleanup(c->multi);
    free(c);
}

static bool is_this_machine(const char *host)
{
    struct ip ip;
    static const struct ip one = {.bytes = {[15] = 1}};
    if (str_eq_nocase(str_of(host), STR("localhost")))
        return true; /* libcurl resolves it without a name server */
    if (ip_parse(str_of(host), &ip))
        return false;
    return ip_is_v4(&ip) ? ip.bytes[12] == 127 : memcmp(&ip, &one, sizeof ip) == 0;
}

struct endpoint {
    enum client_protocol protocol;
    bool tls, local; /* TLS from the first byte; on this machine */
};

static enum err endpoint_of(const char *url, struct endpoint *ret)
{
    static const struct {
        const char *scheme;
        enum client_protocol protocol;
        bool tls;
    } schemes[] = {{"https", CLIENT_HTTP, true},
                   {"http", CLIENT_HTTP, false},
                   {"smtps", CLIENT_SMTP, true},
                   {"smtp", CLIENT_SMTP, false}};
    char *scheme = NULL, *host = NULL;
    enum err e = ERR_INPUT;
    CURLU *parts = curl_url();
    if (parts && !curl_url_set(parts, CURLUPART_URL, url, 0) && !curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) &&
        !curl_url_get(parts, CURLUPART_HOST, &host, 0)) {
        for (size_t i = 0; i < COUNT_OF(schemes) && e; i++) {
            if (strcmp(schemes[i].scheme, scheme) != 0)
                continue;
            *ret = (struct endpoint){schemes[i].protocol, schemes[i].tls, is_this_machine(host)};
            e = OK;
        }
    }
    curl_free(scheme);
    curl_free(host);
    curl_url_cleanup(parts);
    return !e && ret->protocol == CLIENT_HTTP && !ret->tls && !ret->local ? ERR_INPUT : e;
}

enum err client_check_url(const char *url, enum client_protocol protocol)
{
    struct endpoint endpoint;
    enum err e = endpoint_of(url, &endpoint);
    return e ? e : endpoint.protocol == protocol ? OK : ERR_INPUT;
}

static size_t receive(const char *at, size_t one, size_t count, void *context)
{
    (void)one; /* always 1 */
    struct client_call *call = context;
    call->too_long = count > call->got.ceiling - call->got.len;
    if (call->too_long)
        return 0;
    buf_add(&call->got, (struct str){at, count});
    return call->got.failed ? 0 : count;
}

static size_t read_message(char *into, size_t one, size_t size, void *context)
{
    struct client_call *call = context;
    size_t left = call->body.len - call->sent, len = left < size * one ? left : size * one;
    if (len)
        memcpy(into, call->body.at + call->sent, len);
    call->sent += len;
    return len;
}

#define SET(option, value) rc = rc ? rc : curl_easy_setopt(call->easy, option, value)

static CURLcode set_http(struct client_call *call)
{
    CURLcode rc = CURLE_OK;
    struct curl_slist *list = NULL;
    for (size_t i = 0; call->headers && call->headers[i]; i++) {
        struct curl_slist *longer = curl_slist_append(list, call->headers[i]);
        if (!longer) {
            curl_slist_free_all(list);
            return CURLE_OUT_OF_MEMORY;
        }
        list = longer;
    }
    call->list = list;
    SET(CURLOPT_HTTPHEADER, list);
    if (call->body.at) {
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body.len);
        SET(CURLOPT_POSTFIELDS, call->body.at);
    }
    if (call->method)
        SET(CURLOPT_CUSTOMREQUEST, call->method);
    return rc;
}

static CURLcode set_smtp(struct client_call *call, const struct endpoint *endpoint)
{
    CURLcode rc = CURLE_OK;
    struct curl_slist *list = curl_slist_append(NULL, call->recipient);
    if (!list)
        return CURLE_OUT_OF_MEMORY;
    call->list = list;
    SET(CURLOPT_MAIL_FROM, call->sender);
    SET(CURLOPT_MAIL_RCPT, list);
    SET(CURLOPT_USE_SSL, endpoint->tls || !endpoint->local ? (long)CURLUSESSL_ALL : (long)CURLUSESSL_NONE);
    SET(CURLOPT_UPLOAD, 1L);
    SET(CURLOPT_INFILESIZE_LARGE, (curl_off_t)call->body.len);
    SET(CURLOPT_READFUNCTION, read_message);
    SET(CURLOPT_READDATA, call);
    return rc;
}

static CURLcode set_all(const struct client *c, struct client_call *call, const struct endpoint *endpoint)
{
    CURLcode rc = CURLE_OK;
    SET(CURLOPT_URL, call->url);
    SET(CURLOPT_PROTOCOLS_STR, "https,http,smtps,smtp");
    SET(CURLOPT_PROXY, "");
    SET(CURLOPT_NOSIGNAL, 1L);
    /* libcurl would retry a request by itself when a reused connection turns out to be closed. */
    SET(CURLOPT_FRESH_CONNECT, 1L);
    SET(CURLOPT_FORBID_REUSE, 1L);
    SET(CURLOPT_QUICK_EXIT, 1L); /* otherwise a hanging name look-up would block the thread beyond the time limit */
    SET(CURLOPT_TIMEOUT_MS, call->limit_ns > NS_PER_MS ? (long)(call->limit_ns / NS_PER_MS) : 1L);
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_USERAGENT, USER_AGENT);
    SET(CURLOPT_WRITEFUNCTION, receive);
    SET(CURLOPT_WRITEDATA, call);
    SET(CURLOPT_PRIVATE, call);
    if (c->config.ca_file)
        SET(CURLOPT_CAINFO, c->config.ca_file);
    if (rc)
        return rc;
    return endpoint->protocol == CLIENT_HTTP ? set_http(call) : set_smtp(call, endpoint);
}

static void release(struct client *c, struct client_call *call)
{
    if (call->easy) {
        curl_multi_remove_handle(c->multi, call->easy);
        curl_easy_cleanup(call->easy);
    }
    curl_slist_free_all(call->list);
    call->easy = call->list = NULL;
}

static void unlink_call(struct client *c, struct client_call *call)
{
    if (call->previous)
        call->previous->next = call->next;
    else
        c->first = call->next;
    if (call->next)
        call->next->previous = call->previous;
    call->next = call->previous = NULL;
    call->running = false;
}

void client_send(struct client *c, struct client_call *call)
{
    struct endpoint endpoint;
    call->easy = call->list = NULL;
    call->sent = 0;
    call->too_long = false;
    call->status = 0;
    call->got = buf_new(call->answer_max ? call->answer_max : CLIENT_BODY_MAX);
    call->err = endpoint_of(call->url, &endpoint);
    if (!call->err && !(call->easy = curl_easy_init()))
        call->err = ERR_MEMORY;
    if (!call->err && (set_all(c, call, &endpoint) || curl_multi_add_handle(c->multi, call->easy)))
        call->err = ERR_MEMORY;
    call->running = true;
    call->previous = NULL;
    call->next = c->first;
    if (c->first)
        c->first->previous = call;
    c->first = call;
    c->failed_to_start += call->err != OK;
}

void client_cancel(struct client *c, struct client_call *call)
{
    if (!call->running)
        return;
    c->failed_to_start -= call->err != OK;
    unlink_call(c, call);
    release(c, call);
    buf_free(&call->got);
}

static enum err error_of(const struct client_call *call, CURLcode rc)
{
    /* libcurl reports an SMTP rejection as an error, but it is a complete reply. */
    bool refused = call->sender && call->status >= 400;
    if (!rc || (refused && rc != CURLE_OPERATION_TIMEDOUT))
        return OK;
    if (call->too_long)
        return ERR_FULL;
    if (call->got.failed || rc == CURLE_OUT_OF_MEMORY)
        return ERR_MEMORY;
    return rc == CURLE_OPERATION_TIMEDOUT ? ERR_TIMEOUT : ERR_CLOSED;
}

static void complete(struct client *c, struct client_call *call)
{
    unlink_call(c, call);
    release(c, call);
    struct buf got = call->got;
    call->got = buf_new(0);
    call->answer = (struct str){got.at ? got.at : "", got.len};
    call->done(call); /* may send it again */
    buf_free(&got);
}

static void complete_failed_to_start(struct client *c)
{
    for (size_t n = c->failed_to_start; n > 0 && c->failed_to_start > 0; n--) {
        struct client_call *call = c->first;
        while (!call->err)
            call = call->next;
        c->failed_to_start--;
        complete(c, call);
    }
}

/* True when a call was completed. */
static bool perform(struct client *c)
{
    int left;
    bool any = false;
    curl_multi_perform(c->multi, &left);
    for (CURLMsg *message; (message = curl_multi_info_read(c->multi, &left));) {
        if (message->msg != CURLMSG_DONE)
            continue;
        CURLcode rc = message->data.result;
        char *owner = NULL;
        long status = 0;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &owner);
        curl_easy_getinfo(message->easy_handle, CURLINFO_RESPONSE_CODE, &status);
        struct client_call *call = (void *)owner;
        call->status = (int)status;
        call->err = error_of(call, rc);
        complete(c, call);
        any = true;
    }
    return any;
}

void client_turn(struct client *c, int64_t until_ns)
{
    if (c->failed_to_start) {
        complete_failed_to_start(c);
        return;
    }
    if (perform(c))
        return;
    curl_multi_poll(c->multi, NULL, 0, clock_ms_until(until_ns, TURN_MAX_MS), NULL);
    perform(c);
}

void client_wake(struct client *c)
{
    curl_multi_wakeup(c->multi);
}
