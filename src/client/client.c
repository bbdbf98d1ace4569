#include "client/client.h"

#include <curl/curl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/ip.h"

#define TURN_MOST_MS 1000
#define USER_AGENT "reclaim/" RECLAIM_VERSION

struct client {
    struct client_config config;
    CURLM *multi;
    struct client_call *first; /* under way */
    size_t stillborn;          /* of those, calls that could not even begin: told on the next turn */
};

/* libcurl copies requests into buffers of its own, and those carry keys, addresses and codes. */
static void wipe_and_free(void *at)
{
    if (at)
        secret_wipe(at, malloc_usable_size(at));
    free(at);
}

static void *wipe_and_grow(void *at, size_t size)
{
    void *grown = malloc(size);
    if (!grown || !at)
        return grown;
    size_t old = malloc_usable_size(at);
    memcpy(grown, at, old < size ? old : size);
    wipe_and_free(at);
    return grown;
}

static CURLcode begun = CURLE_FAILED_INIT;

static void begin(void)
{
    begun = curl_global_init_mem(CURL_GLOBAL_DEFAULT, malloc, wipe_and_free, wipe_and_grow, strdup, calloc);
}

struct client *client_new(const struct client_config *config)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, begin);
    struct client *c = calloc(1, sizeof *c);
    if (begun || !c) {
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
        return true; /* libcurl never asks a name server for it */
    if (ip_parse(str_of(host), &ip))
        return false;
    return ip_is_v4(&ip) ? ip.bytes[12] == 127 : memcmp(&ip, &one, sizeof ip) == 0;
}

struct endpoint {
    enum client_protocol protocol;
    bool tls, here; /* encrypted from the first byte; on this machine */
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
    return !e && ret->protocol == CLIENT_HTTP && !ret->tls && !ret->here ? ERR_INPUT : e;
}

enum err client_check_url(const char *url, enum client_protocol protocol)
{
    struct endpoint place;
    enum err e = endpoint_of(url, &place);
    return e ? e : place.protocol == protocol ? OK : ERR_INPUT;
}

static size_t take_answer(const char *at, size_t one, size_t count, void *context)
{
    (void)one; /* always 1 */
    struct client_call *call = context;
    call->too_long = count > CLIENT_BODY_MAX - call->got.len;
    if (call->too_long)
        return 0;
    buf_add(&call->got, (struct str){at, count});
    return call->got.failed ? 0 : count;
}

static size_t give_message(char *into, size_t one, size_t size, void *context)
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
    return rc;
}

static CURLcode set_smtp(struct client_call *call, const struct endpoint *place)
{
    CURLcode rc = CURLE_OK;
    struct curl_slist *list = curl_slist_append(NULL, call->recipient);
    if (!list)
        return CURLE_OUT_OF_MEMORY;
    call->list = list;
    SET(CURLOPT_MAIL_FROM, call->sender);
    SET(CURLOPT_MAIL_RCPT, list);
    SET(CURLOPT_USE_SSL, place->tls || !place->here ? (long)CURLUSESSL_ALL : (long)CURLUSESSL_NONE);
    SET(CURLOPT_UPLOAD, 1L);
    SET(CURLOPT_INFILESIZE_LARGE, (curl_off_t)call->body.len);
    SET(CURLOPT_READFUNCTION, give_message);
    SET(CURLOPT_READDATA, call);
    return rc;
}

static CURLcode set_all(const struct client *c, struct client_call *call, const struct endpoint *place)
{
    CURLcode rc = CURLE_OK;
    SET(CURLOPT_URL, call->url);
    SET(CURLOPT_PROTOCOLS_STR, "https,http,smtps,smtp");
    SET(CURLOPT_PROXY, "");
    SET(CURLOPT_NOSIGNAL, 1L);
    /* On a connection kept from before, libcurl would send a request again by itself when that turns out to be dead. */
    SET(CURLOPT_FRESH_CONNECT, 1L);
    SET(CURLOPT_FORBID_REUSE, 1L);
    SET(CURLOPT_QUICK_EXIT, 1L); /* else a name look-up that hangs would keep the thread beyond the call's time */
    SET(CURLOPT_TIMEOUT_MS, call->patience_ns > NS_PER_MS ? (long)(call->patience_ns / NS_PER_MS) : 1L);
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_USERAGENT, USER_AGENT);
    SET(CURLOPT_WRITEFUNCTION, take_answer);
    SET(CURLOPT_WRITEDATA, call);
    SET(CURLOPT_PRIVATE, call);
    if (c->config.ca_file)
        SET(CURLOPT_CAINFO, c->config.ca_file);
    if (rc)
        return rc;
    return place->protocol == CLIENT_HTTP ? set_http(call) : set_smtp(call, place);
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
    call->under_way = false;
}

void client_send(struct client *c, struct client_call *call)
{
    struct endpoint place;
    call->easy = call->list = NULL;
    call->sent = 0;
    call->too_long = false;
    call->status = 0;
    call->got = buf_new(CLIENT_BODY_MAX);
    call->err = endpoint_of(call->url, &place);
    if (!call->err && !(call->easy = curl_easy_init()))
        call->err = ERR_MEMORY;
    if (!call->err && (set_all(c, call, &place) || curl_multi_add_handle(c->multi, call->easy)))
        call->err = ERR_MEMORY;
    call->under_way = true;
    call->previous = NULL;
    call->next = c->first;
    if (c->first)
        c->first->previous = call;
    c->first = call;
    c->stillborn += call->err != OK;
}

void client_cancel(struct client *c, struct client_call *call)
{
    if (!call->under_way)
        return;
    c->stillborn -= call->err != OK;
    unlink_call(c, call);
    release(c, call);
    buf_free(&call->got);
}

static enum err judge(const struct client_call *call, CURLcode rc)
{
    /* libcurl calls a refusal of SMTP an error, but it is an answer. */
    bool refused = call->sender && call->status >= 400;
    if (!rc || (refused && rc != CURLE_OPERATION_TIMEDOUT))
        return OK;
    if (call->too_long)
        return ERR_FULL;
    if (call->got.failed || rc == CURLE_OUT_OF_MEMORY)
        return ERR_MEMORY;
    return rc == CURLE_OPERATION_TIMEDOUT ? ERR_TIMEOUT : ERR_CLOSED;
}

static void tell(struct client *c, struct client_call *call)
{
    unlink_call(c, call);
    release(c, call);
    struct buf got = call->got;
    call->got = buf_new(0);
    call->answer = (struct str){got.at ? got.at : "", got.len};
    call->done(call); /* may send it again */
    buf_free(&got);
}

static void tell_stillborn(struct client *c)
{
    for (size_t n = c->stillborn; n > 0 && c->stillborn > 0; n--) {
        struct client_call *call = c->first;
        while (!call->err)
            call = call->next;
        c->stillborn--;
        tell(c, call);
    }
}

/* True when something was done. */
static bool perform(struct client *c)
{
    int left;
    bool any = false;
    curl_multi_perform(c->multi, &left);
    for (CURLMsg *message; (message = curl_multi_info_read(c->multi, &left));) {
        if (message->msg != CURLMSG_DONE)
            continue;
        CURLcode rc = message->data.result;
        char *whose = NULL;
        long status = 0;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &whose);
        curl_easy_getinfo(message->easy_handle, CURLINFO_RESPONSE_CODE, &status);
        struct client_call *call = (void *)whose;
        call->status = (int)status;
        call->err = judge(call, rc);
        tell(c, call);
        any = true;
    }
    return any;
}

void client_turn(struct client *c, int64_t until_ns)
{
    if (c->stillborn) {
        tell_stillborn(c);
        return;
    }
    if (perform(c))
        return;
    curl_multi_poll(c->multi, NULL, 0, clock_ms_until(until_ns, TURN_MOST_MS), NULL);
    perform(c);
}

void client_wake(struct client *c)
{
    curl_multi_wakeup(c->multi);
}
