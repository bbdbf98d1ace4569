/* A request and its reply, as handlers use them. */
#ifndef HTTP_REQUEST_H
#define HTTP_REQUEST_H

#include "base/arena.h"
#include "base/ip.h"
#include "http/hold.h"

enum method {
    METHOD_GET = 1,
    METHOD_HEAD = 2,
    METHOD_POST = 4,
    METHOD_PUT = 8,
    METHOD_DELETE = 16,
    METHOD_PATCH = 32,
    METHOD_OPTIONS = 64,
    METHOD_OTHER = 128,
    METHOD_ANY = 255, /* for routes only */
};

#define REQUEST_PARAMS_MAX 2

enum method method_parse(const char *name);
const char *method_name(enum method method); /* "other" for those without a name here */

struct reply_header {
    const char *name; /* a constant */
    const char *value;
    struct reply_header *next;
};

struct reply {
    int status;
    const char *content_type; /* a constant */
    struct str body;          /* in the request's arena, or a constant */
    struct reply_header *headers;
    const char *outcome;       /* for the access log: "NOT_FOUND"; a constant or in the arena; may be NULL */
    const char *cache_control; /* a constant; NULL: no-store */
};

struct route;
struct family;
struct forward; /* http/forward.h */

struct request {
    struct arena *arena; /* freed once the reply has been sent */
    const struct route *route;
    const struct family *family;
    enum method method;
    struct str path;
    struct str params[REQUEST_PARAMS_MAX]; /* the parts of the path that match {name} in the route, decoded */
    struct str body;                       /* valid until the handler returns: copy to the arena what is needed later */
    struct ip client;                      /* as seen by trusted proxies; never logged or stored in clear */
    char correlation_id[37];               /* the caller's, or generated */
    int64_t arrived_ns;                    /* when the last byte of the body was read */
    struct str accept_language;            /* the header's value, where authentication was needed; absent: none */
    bool wants_problem;                    /* errors as application/problem+json */
    int64_t not_before_ns;                 /* the reply is not sent before; 0: no limit */
    struct hold hold;
    struct reply reply;
    struct reply *otherwise; /* see reply_with_alternative */
    struct alternative_reply *second;
    struct request_end *ends; /* see request_at_end */
    struct forward *forward;  /* the request is handled by another route now; NULL otherwise */
};

/* A request header's value; absent when there is none. Only on the loop's thread, in the handler. */
struct str request_header(const struct request *rq, const char *name);
/* A value of the query string, decoded, with a NUL behind it; absent when there is none. A value with a malformed escape is
 * returned as it came: no number, id or word has a '%', so that what checks the value refuses it. */
struct str request_query(const struct request *rq, const char *name);
/* The same for free text. ERR_INPUT: an escape is malformed, or the text is not UTF-8 without NUL. */
enum err request_query_text(const struct request *rq, const char *name, struct str *ret) MUST_CHECK;
/* The query string without the values of this name, escaped, each value with a '&' behind it; absent when there is none. Only on
 * the loop's thread, in the handler of a request that was not forwarded. */
struct str request_query_without(const struct request *rq, const char *name);
/* A cookie's value; absent when there is none. Only on the loop's thread, in the handler. */
struct str request_cookie(const struct request *rq, const char *name);
/* Zeroed memory for the work on a request: freed as soon as the reply is ready, so that a held reply needs little. NULL
 * when out of memory. */
void *request_work(struct request *rq, size_t size) MUST_CHECK;
/* Calls `end` on the loop's thread once the reply was sent or the connection is gone. False when out of memory. */
bool request_at_end(struct request *rq, void (*end)(void *context), void *context) MUST_CHECK;
/* Sets the caller's correlation id, found in the body. */
void request_correlate(struct request *rq, struct str uuid);

/* Call these in any order, then reply_send() once, from any thread. `name` and `content_type` are constants; values and
 * bodies are not copied: allocate them in the request's arena. */
void reply_header(struct request *rq, const char *name, const char *value);
void reply_body(struct request *rq, const char *content_type, struct str body);
/* `{"error":code,"message":message}`: errors outside /functions/v1. The code, a constant, is the outcome too. */
void reply_error(struct request *rq, const char *code, const char *message);
/* reply_error() and reply_send() in one call. */
void reply_refuse(struct request *rq, int status, const char *code, const char *message);
/* Copies the JSON into the request's arena and sends it; 500 when it does not fit. */
void reply_json(struct request *rq, int status, struct str json);
/* The reply is not sent before this time. */
void reply_not_before(struct request *rq, int64_t at_ns);
/* Skips the hold when held replies use nearly all connections. For refusals that depend on rate limits alone: their
 * timing reveals nothing, and under overload they must not block other requests. */
void reply_unhold_when_crowded(struct request *rq);
/* Keeps the reply written so far as an alternative; the caller then writes another one. Until that is sent,
 * alternative_reply_choose() makes the server send the alternative instead, so that events during the hold can change the
 * reply. NULL when out of memory; nothing has changed then. */
struct alternative_reply *reply_with_alternative(struct request *rq) MUST_CHECK;
/* From any thread, even after the request has ended. False when it is too late. */
bool alternative_reply_choose(struct alternative_reply *second) MUST_CHECK;
void alternative_reply_free(
    struct alternative_reply *second); /* called once, by the caller of reply_with_alternative() */
/* Passes the request back to the server: the caller must not use it afterwards. */
void reply_send(struct request *rq, int status);

#endif
