/* Handles one request on its loop's thread, from its first line to the end of its reply. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/random.h"
#include "http/access_log.h"
#include "http/escapes.h"
#include "http/forward.h"
#include "http/loop.h"
#include "http/refusal.h"
#include "http/reply.h"
#include "http/strict.h"

/* The arena of a request: most need only the first block while they are held. A page of a list may be several MB. */
#define ARENA_FIRST ((size_t)960)
#define ARENA_MAX ((size_t)8 * 1024 * 1024)
#define WORK_FIRST ((size_t)1536)
#define QUERY_MAX ((size_t)16 * 1024)

static const double lateness_bounds[] = {0.001, 0.002, 0.003, 0.004, 0.005, 0.0075, 0.010, 0.015,
                                         0.020, 0.025, 0.030, 0.040, 0.050, 0.100,  0.500};

METRIC_COUNTER(answers, "reclaim_http_answers_total", "Answers given.", "route", "status");
METRIC_HISTOGRAM(work, "reclaim_http_work_seconds", "From a request's last byte until its answer is ready.",
                 metric_seconds, "route");
METRIC_HISTOGRAM(lateness, "reclaim_http_release_lateness_seconds",
                 "From the instant a held answer may leave until it is handed to the network.", lateness_bounds);

static const char *route_name(const struct request *rq)
{
    return rq->route ? rq->route->path : "none";
}

static struct visit *visit_of(const struct request *rq)
{
    return OWNER_OF(rq, struct visit, rq);
}

static struct str value_of(const struct request *rq, enum MHD_ValueKind kind, const char *name)
{
    const char *value = NULL;
    size_t len = 0;
    MHD_lookup_connection_value_n(visit_of(rq)->connection, kind, name, strlen(name), &value, &len);
    return (struct str){value, value ? len : 0};
}

struct str request_header(const struct request *rq, const char *name)
{
    return rq->forward ? forward_header(rq->forward, name) : value_of(rq, MHD_HEADER_KIND, name);
}

struct str request_cookie(const struct request *rq, const char *name)
{
    return value_of(rq, MHD_COOKIE_KIND, name);
}

/* With its escapes, except that "+" is a space already. */
static struct str raw_query(const struct request *rq, const char *name)
{
    if (!rq->forward)
        return value_of(rq, MHD_GET_ARGUMENT_KIND, name);
    struct str part = forward_query(rq->forward, name);
    return part.at ? arena_copy(rq->arena, part) : part; /* with a NUL behind it */
}

enum err request_query_text(const struct request *rq, const char *name, struct str *ret)
{
    return escapes_decode(rq->arena, raw_query(rq, name), ret);
}

struct str request_query(const struct request *rq, const char *name)
{
    struct str decoded;
    return request_query_text(rq, name, &decoded) == OK ? decoded : raw_query(rq, name);
}

struct query_copy {
    struct str without;
    struct buf *out;
};

static enum MHD_Result copy_query_value(void *context, enum MHD_ValueKind kind, const char *key, size_t key_len,
                                        const char *value, size_t value_len)
{
    const struct query_copy *copy = context;
    struct str parts[] = {{key, key_len}, {value, value ? value_len : 0}};
    (void)kind;
    if (str_eq(parts[0], copy->without))
        return MHD_YES;
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        for (size_t at = 0; at < parts[i].len; at++)
            if (parts[i].at[at] == ' ') /* was a '+' */
                buf_addz(copy->out, "%20");
            else
                buf_add(copy->out, (struct str){parts[i].at + at, 1});
        buf_addz(copy->out, i ? "&" : "=");
    }
    return MHD_YES;
}

struct str request_query_without(const struct request *rq, const char *name)
{
    AUTO(buf) struct buf out = buf_new(QUERY_MAX);
    struct query_copy copy = {str_of(name), &out};
    MHD_get_connection_values_n(visit_of(rq)->connection, MHD_GET_ARGUMENT_KIND, copy_query_value, &copy);
    return out.len && !out.failed ? arena_copy(rq->arena, buf_str(&out)) : (struct str){NULL, 0};
}

void *request_work(struct request *rq, size_t size)
{
    struct visit *visit = visit_of(rq);
    if (!visit->work)
        visit->work = arena_new(size > WORK_FIRST ? size : WORK_FIRST, ARENA_MAX);
    return visit->work ? arena_take(visit->work, size) : NULL;
}

struct request_end {
    void (*end)(void *context);
    void *context;
    struct request_end *next;
};

bool request_at_end(struct request *rq, void (*end)(void *context), void *context)
{
    struct request_end *entry = arena_take(rq->arena, sizeof *entry);
    if (!entry)
        return false;
    *entry = (struct request_end){end, context, rq->ends};
    rq->ends = entry;
    return true;
}

void visit_work_done(struct visit *visit)
{
    arena_free(visit->work);
    visit->work = NULL;
}

void request_correlate(struct request *rq, struct str uuid)
{
    memcpy(rq->correlation_id, uuid.at, 36);
    str_lower(rq->correlation_id, 36);
    log_correlate(rq->correlation_id);
}

/* Repeated X-Forwarded-For headers are one list, in order. */
static enum MHD_Result gather_forwarded(void *context, enum MHD_ValueKind kind, const char *key, const char *value)
{
    (void)kind;
    struct buf *list = context;
    if (value && str_eq_nocase(str_of(key), STR("X-Forwarded-For"))) {
        if (list->len)
            buf_addz(list, ",");
        buf_addz(list, value);
    }
    return MHD_YES;
}

/* Behind a proxy that is not trusted all clients count as one. Warns once. */
static void warn_of_proxy(struct visit *visit, const struct ip *peer)
{
    char network[IP_TEXT_MAX + 4];
    struct server *server = visit->loop->server;
    if (atomic_load(&server->warned_of_proxy) || !ip_private_network(peer, network) ||
        !request_header(&visit->rq, "X-Forwarded-For").at || atomic_exchange(&server->warned_of_proxy, true))
        return;
    log_warn("X-Forwarded-For is ignored: if this network has the proxy in front of Reclaim, name it in "
             "RECLAIM_TRUSTED_PROXIES, otherwise all clients share one limit",
             F_STR("network", network));
}

#define PROXY_KEY_HEADER "X-Reclaim-Proxy-Key"

/* The key itself is never logged: it may be the right one of another installation. Warns once. */
static bool has_proxy_key(struct visit *visit, const struct http_policy *policy)
{
    struct str given = request_header(&visit->rq, PROXY_KEY_HEADER);
    if (!given.at)
        return false;
    if (policy_knows_key(policy, given))
        return true;
    if (!atomic_exchange(&visit->loop->server->warned_of_key, true))
        log_warn("A request has another " PROXY_KEY_HEADER
                 " than RECLAIM_PROXY_KEY: its X-Forwarded-For is not believed");
    return false;
}

static struct ip client_of(struct visit *visit)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(visit->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    struct ip peer = ip_of_sockaddr(info->client_addr);
    const struct http_policy *policy = atomic_load(&visit->loop->server->policy);
    bool has_key = has_proxy_key(visit, policy);
    if (!has_key && !policy_trusts(policy, &peer)) {
        warn_of_proxy(visit, &peer);
        return peer;
    }
    AUTO(buf) struct buf forwarded = buf_new(REQUEST_BODY_MAX);
    MHD_get_connection_values(visit->connection, MHD_HEADER_KIND, gather_forwarded, &forwarded);
    return client_address(policy, peer, has_key, buf_str(&forwarded));
}

/* A request has begun on a new or idle connection: its deadline counts from now. */
void *visit_first_line(void *context, const char *uri, struct MHD_Connection *connection)
{
    const struct loop *loop = context;
    struct peer *peer = peer_of(connection);
    peer_wait(peer, loop->server->config.request_deadline_ns);
    if (peer)
        peer->target = uri;
    return NULL; /* the handler's context: none yet */
}

/* The path of a target in absolute form, as some proxies send it: "http://host/path". */
static struct str path_of(struct str target)
{
    if (!str_starts(target, STR("http://")) && !str_starts(target, STR("https://")))
        return target;
    const char *host = (const char *)memchr(target.at, '/', target.len) + 2;
    const char *path = memchr(host, '/', (size_t)(target.at + target.len - host));
    return path ? (struct str){path, (size_t)(target.at + target.len - path)} : STR("/");
}

struct visit *visit_new(struct loop *loop, struct MHD_Connection *connection, const char *url, const char *method)
{
    struct arena *arena = arena_new(ARENA_FIRST, ARENA_MAX);
    struct visit *visit = arena ? arena_take(arena, sizeof *visit) : NULL;
    if (!visit) {
        arena_free(arena);
        return NULL;
    }
    visit->loop = loop;
    visit->connection = connection;
    visit->body = buf_new(REQUEST_BODY_MAX);
    visit->rq.arena = arena;
    visit->rq.method = method_parse(method);
    visit->rq.path = arena_copy(arena, path_of(str_of(url)));
    loop->visits++;
    return visit;
}

static void log_request(const struct visit *visit)
{
    const struct request *rq = &visit->rq;
    const struct server *server = visit->loop->server;
    if (!server->config.logs_requests || !atomic_load(&server->policy)->access_log)
        return;
    bool answered = visit->sent_ns != 0, held = rq->hold.until_ns != 0;
    access_log_add(&visit->loop->access_log,
                   &(struct access){.correlation_id = rq->correlation_id,
                                    .route = route_name(rq),
                                    .method = method_name(rq->method),
                                    .status = answered ? rq->reply.status : 0,
                                    .outcome = answered ? rq->reply.outcome : "incomplete",
                                    .ns = answered ? visit->sent_ns - rq->arrived_ns : -1,
                                    .work_ns = held && answered ? visit->ready_ns - rq->arrived_ns : -1});
}

void visit_end(struct visit *visit)
{
    buf_free(&visit->body);
    visit_work_done(visit);
    reply_make_final(&visit->rq);
    log_request(visit);
    for (struct request_end *entry = visit->rq.ends; entry; entry = entry->next)
        entry->end(entry->context);
    visit->loop->visits--;
    arena_free(visit->rq.arena);
}

void visit_completed(void *context, struct MHD_Connection *connection, void **visit_context,
                     enum MHD_RequestTerminationCode how)
{
    (void)how;
    const struct loop *loop = context;
    if (!*visit_context)
        return;
    visit_end(*visit_context);
    *visit_context = NULL;
    peer_wait(peer_of(connection), loop->server->config.idle_ns);
}

static _Thread_local const struct visit *in_handler;

bool visit_is_in_handler(const struct visit *visit)
{
    return in_handler == visit;
}

void visit_count_answer(const struct request *rq)
{
    char status[12];
    snprintf(status, sizeof status, "%d", rq->reply.status);
    counter_add(&answers, 1, route_name(rq), status);
}

static enum MHD_Result queue_reply(struct visit *visit)
{
    struct request *rq = &visit->rq;
    struct server *server = visit->loop->server;
    reply_make_final(rq);
    visit->sent_ns = clock_ns();
    struct MHD_Response *response = MHD_create_response_from_buffer(
        rq->reply.body.len, (void *)(uintptr_t)rq->reply.body.at, MHD_RESPMEM_PERSISTENT);
    if (!response)
        return MHD_NO;

    if (rq->reply.content_type)
        MHD_add_response_header(response, "Content-Type", rq->reply.content_type);
    MHD_add_response_header(response, "Cache-Control", rq->reply.cache_control ? rq->reply.cache_control : "no-store");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "X-Correlation-Id", rq->correlation_id);
    for (const struct reply_header *h = rq->reply.headers; h; h = h->next)
        MHD_add_response_header(response, h->name, h->value);
    if (visit->malformed || atomic_load(&server->draining))
        MHD_add_response_header(response, "Connection", "close");

    if (rq->hold.until_ns)
        histogram_observe(&lateness, (double)(visit->sent_ns - visit->release_ns) / (double)NS_PER_S);
    visit_count_answer(rq);
    atomic_fetch_add_explicit(&visit->loop->answered, 1, memory_order_relaxed);
    peer_send(peer_of(visit->connection));
    enum MHD_Result queued = MHD_queue_response(visit->connection, (unsigned)rq->reply.status, response);
    MHD_destroy_response(response);
    return queued;
}

static bool decode_params(struct request *rq)
{
    for (size_t i = 0; i < REQUEST_PARAMS_MAX; i++)
        if (escapes_decode(rq->arena, rq->params[i], &rq->params[i]))
            return false;
    return true;
}

/* The methods that a CORS preflight allows; 0 if the request is none. At an unknown path they are all allowed, so that a
 * page can read the 404. */
static unsigned preflight_methods(const struct visit *visit)
{
    const struct request *rq = &visit->rq;
    if (!rq->family->cors || rq->method != METHOD_OPTIONS)
        return 0;
    if (visit->path_methods || !request_header(rq, "Access-Control-Request-Method").at)
        return visit->path_methods;
    return METHOD_GET | METHOD_HEAD | METHOD_POST | METHOD_PUT | METHOD_DELETE | METHOD_PATCH | METHOD_OPTIONS;
}

/* Sends replies that do not depend on the body, or calls the route's handler. */
static void dispatch(struct visit *visit)
{
    struct request *rq = &visit->rq;
    const struct http_policy *policy = atomic_load(&visit->loop->server->policy);
    unsigned preflight = preflight_methods(visit);
    if (rq->family->cors)
        cors_headers(policy, rq, request_header(rq, "Origin"), preflight);

    if (preflight) {
        reply_send(rq, 204);
    } else if (!rq->route) {
        if (visit->path_methods)
            reply_header(rq, "Allow", methods_list(rq->arena, visit->path_methods).at);
        rq->family->refuse(rq, visit->path_methods ? 405 : 404);
        reply_send(rq, visit->path_methods ? 405 : 404);
    } else if (visit->too_large) {
        rq->family->refuse(rq, 413);
        reply_send(rq, 413);
    } else if (!decode_params(rq)) {
        reply_refuse(rq, 400, "INVALID_ID", "The address has a malformed escape: %XX stands for a byte of UTF-8 text.");
    } else {
        rq->hold = hold_draw(rq->route->hold, rq->arrived_ns);
        rq->body = buf_str(&visit->body);
        route_handle(rq);
    }
}

/* The request is complete: sends its reply, holds it, or suspends the request until another thread answers it. */
static enum MHD_Result visit_arrived(struct visit *visit)
{
    struct loop *loop = visit->loop;
    peer_work(peer_of(visit->connection));
    visit->rq.arrived_ns = clock_ns();
    visit->state = VISIT_WORKING;
    atomic_fetch_add(&loop->working, 1);
    log_correlate(visit->rq.correlation_id);
    in_handler = visit;
    dispatch(visit);
    in_handler = NULL;
    log_correlate(NULL);
    /* Another thread may already have answered, but only this thread processes the inbox, so `visit` stays valid. */
    buf_free(&visit->body);

    if (visit->state == VISIT_REPLIED) {
        atomic_fetch_sub(&loop->working, 1);
        visit_work_done(visit);
        if (visit->release_ns <= clock_ns())
            return queue_reply(visit);
        wheel_add(&loop->parked, &visit->parked, visit->release_ns);
        atomic_fetch_add(&loop->held, 1);
    }
    MHD_suspend_connection(visit->connection);
    return MHD_YES;
}

static bool accepts_problem(struct str accept)
{
    struct str kind, range;
    while (str_split(&accept, ',', &range))
        if (str_split(&range, ';', &kind) && str_eq_nocase(str_trim(kind), STR("application/problem+json")))
            return true;
    return false;
}

void visit_identify(struct visit *visit)
{
    struct request *rq = &visit->rq;
    struct str given = request_header(rq, "X-Correlation-Id");
    if (str_is_uuid(given))
        request_correlate(rq, given);
    else
        random_uuid(rq->correlation_id);
    log_correlate(NULL); /* set again for the handler */
    rq->wants_problem = accepts_problem(request_header(rq, "Accept"));
    visit->path_methods = router_find(visit->loop->server->config.router, rq);
    if (rq->route && rq->route->body_max)
        visit->body.ceiling = rq->route->body_max;
}

static enum MHD_Result visit_began(struct visit *visit, const char *method, const char *version)
{
    struct loop *loop = visit->loop;
    struct request *rq = &visit->rq;
    visit_identify(visit);
    if (refusal_is_needed(visit->connection)) {
        refusal_send(visit, 431);
        return MHD_NO; /* closes the connection */
    }
    if (!rq->path.at || !strict_accepts(visit->connection, method, version)) {
        visit->malformed = true;
        rq->arrived_ns = clock_ns();
        rq->family->refuse(rq, 400);
        rq->reply.status = 400;
        return queue_reply(visit);
    }
    rq->client = client_of(visit);
    peer_wait(peer_of(visit->connection), loop->server->config.request_deadline_ns);
    return MHD_YES;
}

const struct router *visit_router(const struct request *rq)
{
    return visit_of(rq)->loop->server->config.router;
}

enum MHD_Result visit_handle(void *context, struct MHD_Connection *connection, const char *url, const char *method,
                             const char *version, const char *data, size_t *data_len, void **visit_context)
{
    struct visit *visit = *visit_context;
    if (!visit) {
        struct peer *peer = peer_of(connection);
        if (peer)
            peer->target = NULL;
        visit = visit_new(context, connection, url, method);
        *visit_context = visit;
        return visit ? visit_began(visit, method, version) : MHD_NO;
    }
    if (*data_len > 0) { /* the excess is read and dropped, so that the client receives the 413 */
        if (!visit->rq.route || !visit->rq.route->ignores_body)
            buf_add(&visit->body, (struct str){data, *data_len});
        visit->too_large |= visit->body.failed != OK;
        *data_len = 0;
        return MHD_YES;
    }
    return visit->state == VISIT_DUE ? queue_reply(visit) : visit_arrived(visit);
}

void reply_unhold_when_crowded(struct request *rq)
{
    const struct loop *loop = visit_of(rq)->loop;
    const struct server_config *config = &loop->server->config;
    int most = config->connections_max / config->loops;
    if (atomic_load(&loop->held) + atomic_load(&loop->working) > most - most / 8)
        rq->hold = (struct hold){0, 0};
}

void reply_send(struct request *rq, int status)
{
    rq->reply.status = status;
    if (rq->forward && !forward_answered(rq))
        return;
    struct visit *visit = visit_of(rq);
    int64_t ready_ns = visit->ready_ns = clock_ns();
    histogram_observe(&work, (double)(ready_ns - rq->arrived_ns) / (double)NS_PER_S, route_name(rq));
    visit->release_ns = hold_release_ns(&rq->hold, ready_ns);
    if (visit->release_ns < rq->not_before_ns)
        visit->release_ns = rq->not_before_ns;
    loop_take_reply(visit);
}
