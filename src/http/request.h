/* One request, as its handler sees it, and the answer it gets. */
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
    METHOD_ANY = 255, /* of a route */
};

#define REQUEST_PARAMS_MAX 2

enum method method_parse(const char *name);

struct reply_header {
    const char *name; /* a constant */
    const char *value;
    struct reply_header *next;
};

struct reply {
    int status;
    const char *content_type; /* a constant */
    struct str body;          /* of the request's arena, or a constant */
    struct reply_header *headers;
};

struct route;
struct family;

struct request {
    struct arena *arena; /* goes once the answer has left */
    const struct route *route;
    const struct family *family;
    enum method method;
    struct str path;
    struct str params[REQUEST_PARAMS_MAX]; /* what stood in the path where the route has {name} */
    struct str body;                       /* only until the handler returns: copy into the arena what lives longer */
    struct ip client;                      /* behind trusted proxies; never logged or stored in clear */
    char correlation_id[37];               /* the caller's, or made */
    int64_t arrived_ns;                    /* when the last byte of the body was read */
    bool wants_problem;                    /* errors as application/problem+json */
    int64_t not_before_ns;                 /* the answer stays until then; 0: no matter */
    struct hold hold;
    struct reply reply;
    struct reply *otherwise; /* see reply_second_thought */
    struct second_thought *second;
};

/* A request header's value; absent when there is none. On the loop's thread, in the handler. */
struct str request_header(const struct request *rq, const char *name);
/* A value of the query string, decoded; absent when there is none. Until the answer is sent, on any thread. */
struct str request_query(const struct request *rq, const char *name);
/* Memory to work on a request with, zeroed: it goes as soon as the answer is ready, so that one which is only waiting for
 * its instant takes little. NULL when there is none. */
void *request_work(struct request *rq, size_t size) MUST_CHECK;
/* Takes over the caller's correlation id from the body. */
void request_correlate(struct request *rq, struct str uuid);

/* Answering, in any order, then reply_send once, from any thread. `name` and `content_type` are constants; values and
 * bodies are taken as they are, so let them come from the request's arena. */
void reply_header(struct request *rq, const char *name, const char *value);
void reply_body(struct request *rq, const char *content_type, struct str body);
/* `{"error":code,"message":message}`: errors outside /functions/v1. */
void reply_error(struct request *rq, const char *code, const char *message);
/* reply_error and reply_send in one: the last thing done with a request that is refused. */
void reply_refuse(struct request *rq, int status, const char *code, const char *message);
/* JSON from memory that may go: it is copied into the request's arena. 500 when that is too small. */
void reply_json(struct request *rq, int status, struct str json);
/* The answer leaves no earlier than that. */
void reply_not_before(struct request *rq, int64_t at_ns);
/* Lets the answer go at once, hold or not, when held answers have nearly used up the connections. For refusals that
 * depend on counters alone: their time tells nothing, and in a flood they must not keep others out. */
void reply_unhold_when_crowded(struct request *rq);
/* Turns the answer that has been written into a second thought, and lets another be written in its place. Until that one
 * has left, second_thought_choose() has this one leave instead: so that an answer can be parked for its instant, and what
 * happens meanwhile still counts. NULL without memory; then nothing has changed. */
struct second_thought *reply_second_thought(struct request *rq) MUST_CHECK;
/* From any thread, whether the request is still there or not. False when it is too late. */
bool second_thought_choose(struct second_thought *second) MUST_CHECK;
void second_thought_free(struct second_thought *second); /* whoever got it, once */
/* The request is the server's again: the caller must not touch it afterwards. */
void reply_send(struct request *rq, int status);

#endif
