/* POST /v1/calls: the switch asks whether a customer's call may begin.
 *
 * Set-ups that arrive together share a transaction, and with it a commit. One that cannot begin at once, because another
 * transaction holds its customer's row, must not keep the others waiting: then each is asked alone. */
#include <stdlib.h>
#include <string.h>

#include "api/db_request.h"
#include "api/fields.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "calls/calls.h"
#include "calls/limits.h"
#include "calls/statements.h"
#include "pg/tx.h"

#define BATCH_MOST 64
#define BATCH_WAITING_MOST 4096
#define BATCH_NS (10 * NS_PER_S)
#define BATCH_BYTES ((size_t)BATCH_MOST * 8192)

METRIC_COUNTER(begun, "reclaim_calls_asked_total", "Call set-ups that a switch asked about.", "outcome");

struct set_up {
    struct db_request db;
    struct batch_item item;
    bool sent; /* in a batch: it may have been committed, even if the result was lost */
    struct calls *context;
    const char *customer_id, *direction, *source, *destination, *sip_call_id, *from_tag, *master, *confbridge, *group,
        *at_switch;
    int64_t cseq; /* -1: none */
    struct str outcome, call;
    struct freeze freeze;
};

static void read_set_up(struct fields *f, struct set_up *ret);
static void begin(struct set_up *s);
static enum err run_alone(struct db_request *db, struct pg *pg);
static void answer(struct db_request *db);

/* 1. On the loop. */
void call_begin_handle(struct request *rq, const struct caller *caller, void *calls)
{
    (void)caller;
    struct set_up *s = db_request_new(rq, sizeof *s, run_alone, answer);
    if (!s)
        return;
    s->context = calls;
    AUTO(fields) struct fields f = fields_read(rq->arena, rq->body, CALL_BODY_PROBLEM);
    read_set_up(&f, s);
    if (!fields_refuse(&f, rq))
        begin(s);
}

static void read_set_up(struct fields *f, struct set_up *ret)
{
    static const struct field customer_id = {.name = "customer_id", .required = true, .bytes_max = CALL_NAME_MAX},
                              direction = {.name = "direction", .required = true, .bytes_max = CALL_NAME_MAX},
                              source = {.name = "source", .required = true, .bytes_max = CALL_NAME_MAX},
                              destination = {.name = "destination", .required = true, .bytes_max = CALL_NAME_MAX},
                              sip_call_id = {.name = "sip_call_id", .bytes_max = CALL_NAME_MAX},
                              from_tag = {.name = "from_tag", .bytes_max = CALL_TAG_MAX},
                              cseq = {.name = "cseq",
                                      .code = "INVALID_INPUT",
                                      .message = "cseq must be a number of at most 32 bits."},
                              master = {.name = "master_call_id", .bytes_max = CALL_NAME_MAX},
                              confbridge = {.name = "confbridge_id", .bytes_max = CALL_NAME_MAX},
                              group = {.name = "groupcall_id", .bytes_max = CALL_NAME_MAX},
                              at_switch = {.name = "switch", .bytes_max = CALL_NAME_MAX};
    ret->customer_id = field_uuid(f, &customer_id);
    ret->direction = field_copy(f, &direction);
    if (ret->direction && strcmp(ret->direction, "incoming") != 0 && strcmp(ret->direction, "outgoing") != 0)
        fields_fail(f, &direction, "is \"incoming\" or \"outgoing\"");
    ret->source = field_copy(f, &source);
    ret->destination = field_copy(f, &destination);
    ret->sip_call_id = field_copy(f, &sip_call_id);
    ret->from_tag = field_copy(f, &from_tag);
    ret->cseq = -1;
    (void)field_integer(f, &cseq, 0, CALL_CSEQ_MAX, &ret->cseq);
    ret->master = field_uuid(f, &master);
    ret->confbridge = field_uuid(f, &confbridge);
    ret->group = field_uuid(f, &group);
    ret->at_switch = field_copy(f, &at_switch);
}

/* One that depends on other calls reads those first, and so goes alone. */
static void begin(struct set_up *s)
{
    struct batch *set_ups = s->master || s->group ? NULL : atomic_load(&s->context->set_ups);
    if (!set_ups || batch_add(set_ups, &s->item))
        db_request_start(&s->db, atomic_load(&s->context->pool));
}

static enum err take_result(struct set_up *s, const struct pg_call *rows, int row)
{
    struct arena *arena = s->db.rq->arena;
    bool has_call = !pg_is_null(rows, row, 1);
    s->outcome = arena_copy(arena, pg_get(rows, row, 0));
    s->call = has_call ? arena_copy(arena, pg_get(rows, row, 1)) : (struct str){NULL, 0};
    s->freeze = freeze_read(rows, row, 2);
    return s->outcome.at && (!has_call || s->call.at) ? OK : ERR_MEMORY;
}

/* 2a. On a worker: one set-up alone. */
static enum err run_alone(struct db_request *db, struct pg *pg)
{
    struct set_up *s = OWNER_OF(db, struct set_up, db);
    struct pg_call call = {.ask = &call_begin,
                           .args = {pg_text(s->customer_id), pg_text(s->direction), pg_text(s->source),
                                    pg_text(s->destination), pg_text_or_null(s->sip_call_id),
                                    pg_text_or_null(s->from_tag), s->cseq < 0 ? pg_null() : pg_i64(s->cseq),
                                    pg_text_or_null(s->master), pg_text_or_null(s->confbridge),
                                    pg_text_or_null(s->group), pg_text_or_null(s->at_switch)}};
    enum err e = pg_ask(pg, &call, db->job.deadline_ns);
    if (e)
        return e;
    if (call.rows != 1 || pg_is_null(&call, 0, 0))
        return ERR_CONFLICT; /* the call that it repeats was deleted meanwhile */
    return take_result(s, &call, 0);
}

static struct set_up *set_up_of(struct batch_item *item)
{
    return OWNER_OF(item, struct set_up, item);
}

/* Every transaction takes the customers' locks in this order. */
static int by_customer(const void *a, const void *b)
{
    struct batch_item *const *one = a, *const *other = b;
    return strcmp(set_up_of(*one)->customer_id, set_up_of(*other)->customer_id);
}

static void add_text(struct json_writer *w, const char *key, const char *text)
{
    if (!text)
        return;
    json_key(w, key);
    json_str(w, str_of(text));
}

static void write_set_ups(struct buf *out, struct batch_item **items, size_t count)
{
    struct json_writer w = json_to(out);
    json_open(&w, '[');
    for (size_t i = 0; i < count; i++) {
        const struct set_up *s = set_up_of(items[i]);
        json_open(&w, '{');
        json_key(&w, "number");
        json_i64(&w, (int64_t)i);
        add_text(&w, "customer", s->customer_id);
        add_text(&w, "direction", s->direction);
        add_text(&w, "source", s->source);
        add_text(&w, "destination", s->destination);
        add_text(&w, "sip_call_id", s->sip_call_id);
        add_text(&w, "from_tag", s->from_tag);
        add_text(&w, "confbridge", s->confbridge);
        add_text(&w, "switch", s->at_switch);
        if (s->cseq >= 0) {
            json_key(&w, "cseq");
            json_i64(&w, s->cseq);
        }
        json_close(&w, '}');
    }
    json_close(&w, ']');
}

/* 2b. On a worker: a batch in one transaction. */
static enum err run_batch(void *context, struct pg *pg, struct batch_item **items, size_t count)
{
    (void)context;
    qsort(items, count, sizeof(struct batch_item *), by_customer);
    AUTO(buf) struct buf set_ups = buf_new(BATCH_BYTES);
    write_set_ups(&set_ups, items, count);
    if (set_ups.failed)
        return ERR_MEMORY;
    for (size_t i = 0; i < count; i++)
        set_up_of(items[i])->sent = true;
    AUTO(tx) struct tx *tx = tx_begin(pg, clock_ns() + BATCH_NS);
    struct pg_call calls[] = {{.ask = &calls_limit_lock_wait},
                              {.ask = &calls_begin, .args = {pg_text(buf_str(&set_ups).at)}}};
    const struct pg_call *rows = &calls[1];
    enum err e = tx_commit(tx, calls, COUNT_OF(calls));
    if (e)
        return e;
    for (int row = 0; row < rows->rows && !e; row++) {
        int64_t number = pg_get_i64(rows, row, 6);
        if (number >= 0 && (size_t)number < count && !pg_is_null(rows, row, 0))
            e = take_result(set_up_of(items[number]), rows, row);
    }
    return e;
}

/* 3b. For each of the batch, on the same worker. A batch that was rolled back is asked one by one. When it is unknown whether
 * it was, a set-up with the switch's id is repeated, since a repeat finds the call; any other is not. */
static void batch_done(void *context, struct batch_item *item, enum err e)
{
    (void)context;
    struct set_up *s = set_up_of(item);
    bool rolled_back = e && e != ERR_TIMEOUT && e != ERR_CLOSED && e != ERR_MEMORY;
    if (!e && s->outcome.at)
        answer(&s->db);
    else if (rolled_back || !s->sent || s->sip_call_id)
        db_request_start(&s->db, atomic_load(&s->context->pool));
    else
        reply_fault(s->db.rq, e ? e : ERR_DATABASE);
}

/* 4. On the worker. */
static void answer(struct db_request *db)
{
    struct set_up *s = OWNER_OF(db, struct set_up, db);
    struct request *rq = db->rq;
    counter_add(&begun, 1, s->outcome.at);
    if (s->call.at) {
        reply_body(rq, "application/json", s->call);
        reply_send(rq, str_eq(s->outcome, STR("created")) ? 201 : 200);
    } else if (str_eq(s->outcome, STR("frozen"))) {
        struct caller frozen = {.standing = STANDING_FROZEN, .freeze = s->freeze};
        authenticator_refuse_frozen(s->context->authenticator, rq, &frozen);
    } else if (str_eq(s->outcome, STR("deleted"))) {
        reply_refuse(rq, 403, "CUSTOMER_DELETED", "This customer has been deleted and cannot make or take calls.");
    } else if (str_eq(s->outcome, STR("no_master"))) {
        reply_refuse(rq, 400, "MASTER_CALL_NOT_FOUND", "master_call_id names no call.");
    } else if (str_eq(s->outcome, STR("no_switch"))) {
        reply_refuse(rq, 400, "SWITCH_NOT_FOUND", "No switch of this name is recorded; see reclaim switch list.");
    } else if (str_eq(s->outcome, STR("which_switch"))) {
        reply_refuse(rq, 400, "SWITCH_REQUIRED",
                     "Several switches are recorded: a call with a sip_call_id must name its own in switch.");
    } else {
        reply_refuse(rq, 404, "CUSTOMER_NOT_FOUND", "There is no customer with this id.");
    }
}

enum err calls_open(struct calls *context, struct pool *pool)
{
    struct batch *set_ups = batch_new(&(struct batch_config){.pool = pool,
                                                             .most = BATCH_MOST,
                                                             .capacity = BATCH_WAITING_MOST,
                                                             .in_flight = 4,
                                                             .limit_ns = BATCH_NS,
                                                             .context = context,
                                                             .run = run_batch,
                                                             .done = batch_done});
    if (!set_ups)
        return ERR_MEMORY;
    atomic_store(&context->pool, pool);
    atomic_store(&context->set_ups, set_ups);
    return OK;
}

void calls_close(struct calls *context)
{
    batch_free(atomic_exchange(&context->set_ups, NULL));
}
