#include <stdatomic.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/json.h"
#include "http/reply.h"

void reply_header(struct request *rq, const char *name, const char *value)
{
    struct reply_header *header = value ? arena_take(rq->arena, sizeof *header) : NULL;
    if (!header)
        return;
    *header = (struct reply_header){name, value, rq->reply.headers};
    rq->reply.headers = header;
}

void reply_body(struct request *rq, const char *content_type, struct str body)
{
    rq->reply.content_type = content_type;
    rq->reply.body = body;
}

void reply_error(struct request *rq, const char *code, const char *message)
{
    AUTO(buf) struct buf out = buf_new(2048);
    struct json_writer w = json_to(&out);
    json_open(&w, '{');
    json_key(&w, "error");
    json_str(&w, str_of(code));
    json_key(&w, "message");
    json_str(&w, str_of(message));
    json_close(&w, '}');
    reply_body(rq, "application/json", arena_copy(rq->arena, buf_str(&out)));
    rq->reply.outcome = code;
}

void reply_refuse(struct request *rq, int status, const char *code, const char *message)
{
    reply_error(rq, code, message);
    reply_send(rq, status);
}

void reply_json(struct request *rq, int status, struct str json)
{
    struct str copy = json.at ? arena_copy(rq->arena, json) : json;
    if (!copy.at) {
        reply_refuse(rq, 500, "TOO_LARGE", "The answer is larger than Reclaim can hold.");
        return;
    }
    reply_body(rq, "application/json", copy);
    reply_send(rq, status);
}

void reply_not_before(struct request *rq, int64_t at_ns)
{
    rq->not_before_ns = at_ns;
}

/* Shared by the request, until its reply is sent, and by the caller of reply_with_alternative(). */
struct alternative_reply {
    atomic_int holders;
    atomic_int state;
};
enum { THOUGHT_OPEN, THOUGHT_CHOSEN, THOUGHT_TOO_LATE };

struct alternative_reply *reply_with_alternative(struct request *rq)
{
    struct alternative_reply *second = calloc(1, sizeof *second);
    struct reply *otherwise = second ? arena_take(rq->arena, sizeof *otherwise) : NULL;
    if (!otherwise) {
        free(second);
        return NULL;
    }
    atomic_store(&second->holders, 2);
    *otherwise = rq->reply;
    rq->otherwise = otherwise;
    rq->second = second;
    return second;
}

bool alternative_reply_choose(struct alternative_reply *second)
{
    int open = THOUGHT_OPEN;
    return atomic_compare_exchange_strong(&second->state, &open, THOUGHT_CHOSEN);
}

void alternative_reply_free(struct alternative_reply *second)
{
    if (second && atomic_fetch_sub(&second->holders, 1) == 1)
        free(second);
}

void reply_make_final(struct request *rq)
{
    if (!rq->second)
        return;
    if (atomic_exchange(&rq->second->state, THOUGHT_TOO_LATE) == THOUGHT_CHOSEN)
        rq->reply = *rq->otherwise;
    alternative_reply_free(rq->second);
    rq->second = NULL;
}
