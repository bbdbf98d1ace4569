#include "calls/calls.h"

#include <stdlib.h>
#include <string.h>

#include "api/db_request.h"
#include "api/read.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/metrics.h"
#include "calls/statements.h"
#include "calls/status.h"
#include "pg/tx.h"

#define NAME_MAX 255 /* bytes of a number, an address or a SIP Call-ID */
#define TAG_MAX 128
#define REASON_MAX 64
#define CSEQ_MAX INT64_C(4294967295)

METRIC_COUNTER(begun, "reclaim_calls_asked_total", "Call set-ups that a switch asked about.", "outcome");

/* Reading what was sent. The first fault is told; a field that is null is not there. */

struct reading {
    struct request *rq;
    json_t *body;
    char fault[96];
};

static void find_fault(struct reading *r, const char *field, const char *what)
{
    struct buf out = buf_over(r->fault, sizeof r->fault);
    if (!r->fault[0])
        buf_addf(&out, "%s %s.", field, what);
}

static void read_body(struct reading *r, struct request *rq)
{
    r->rq = rq;
    r->fault[0] = 0;
    r->body = json_read_object(rq->body, NULL);
    if (!r->body)
        find_fault(r, "The body", "must be a JSON object");
}

/* A copy in the request's arena; NULL when it is not there, or at fault. */
static const char *text_of(struct reading *r, const char *field, size_t most)
{
    const json_t *value = json_object_get(r->body, field);
    if (!value || json_is_null(value))
        return NULL;
    struct str text = {json_string_value(value), json_string_length(value)};
    if (!text.at || text.len > most) {
        find_fault(r, field, text.at ? "is too long" : "must be a string");
        return NULL;
    }
    struct str copy = arena_copy(r->rq->arena, text);
    if (!copy.at)
        find_fault(r, field, "is too long");
    return copy.at;
}

static const char *uuid_of(struct reading *r, const char *field)
{
    const char *text = text_of(r, field, NAME_MAX);
    if (text && !str_is_uuid(str_of(text)))
        find_fault(r, field, "must be a UUID");
    return text;
}

static void demand(struct reading *r, const char *field, const char *value)
{
    if (!value)
        find_fault(r, field, "is missing");
}

/* -1 when it is not there. */
static int64_t cseq_of(struct reading *r)
{
    const json_t *value = json_object_get(r->body, "cseq");
    if (!value || json_is_null(value))
        return -1;
    json_int_t n = json_integer_value(value);
    if (!json_is_integer(value) || n < 0 || n > CSEQ_MAX)
        find_fault(r, "cseq", "must be a number of at most 32 bits");
    return n;
}

/* Frees the body; false after a 400 was sent. */
static bool read_well(struct reading *r)
{
    json_decref(r->body);
    if (!r->fault[0])
        return true;
    reply_refuse(r->rq, 400, "INVALID_INPUT", arena_copy(r->rq->arena, str_of(r->fault)).at);
    return false;
}

/* Set-up */

struct beginning {
    struct db_request db;
    struct batch_item item;
    bool sent; /* with others; it may have begun, even if nobody was told */
    struct calls *context;
    const char *customer_id, *direction, *source, *destination, *sip_call_id, *from_tag, *master, *confbridge, *group;
    int64_t cseq;
    struct str outcome, call;
    int64_t scheduled_us;
};

static struct pg_arg text_or_null(const char *text)
{
    return text ? pg_text(text) : pg_null();
}

static enum err take_begun(struct beginning *b, const struct pg_call *rows, int row)
{
    struct arena *arena = b->db.rq->arena;
    bool has_call = !pg_is_null(rows, row, 1);
    b->outcome = arena_copy(arena, pg_get(rows, row, 0));
    b->call = has_call ? arena_copy(arena, pg_get(rows, row, 1)) : (struct str){NULL, 0};
    b->scheduled_us = pg_get_i64(rows, row, 2);
    return b->outcome.at && (!has_call || b->call.at) ? OK : ERR_MEMORY;
}

static enum err run_begin(struct db_request *db, struct pg *pg)
{
    struct beginning *b = OWNER_OF(db, struct beginning, db);
    struct pg_call call = {.ask = &call_begin,
                           .args = {pg_text(b->customer_id), pg_text(b->direction), pg_text(b->source),
                                    pg_text(b->destination), text_or_null(b->sip_call_id), text_or_null(b->from_tag),
                                    b->cseq < 0 ? pg_null() : pg_i64(b->cseq), text_or_null(b->master),
                                    text_or_null(b->confbridge), text_or_null(b->group)}};
    enum err e = pg_ask(pg, &call, db->job.deadline_ns);
    if (e)
        return e;
    if (call.rows != 1 || pg_is_null(&call, 0, 0))
        return ERR_CONFLICT; /* the call it repeats went meanwhile */
    return take_begun(b, &call, 0);
}

static void answer_begin(struct db_request *db)
{
    struct beginning *b = OWNER_OF(db, struct beginning, db);
    struct request *rq = db->rq;
    counter_add(&begun, 1, b->outcome.at);
    if (b->call.at) {
        reply_body(rq, "application/json", b->call);
        reply_send(rq, str_eq(b->outcome, STR("created")) ? 201 : 200);
    } else if (str_eq(b->outcome, STR("frozen"))) {
        struct caller frozen = {.standing = CUSTOMER_FROZEN, .scheduled_us = b->scheduled_us};
        authenticator_refuse_frozen(b->context->authenticator, rq, &frozen);
    } else if (str_eq(b->outcome, STR("deleted"))) {
        reply_refuse(rq, 403, "CUSTOMER_DELETED", "This customer has been deleted and cannot make or take calls.");
    } else if (str_eq(b->outcome, STR("no_master"))) {
        reply_refuse(rq, 400, "MASTER_CALL_NOT_FOUND", "master_call_id names no call.");
    } else {
        reply_refuse(rq, 404, "CUSTOMER_NOT_FOUND", "There is no customer with this id.");
    }
}

/* Set-ups that arrive together share a transaction, and with it a commit. One that cannot begin at once, because somebody
 * holds its customer's row, must not keep the others waiting: then each is asked for alone. */
#define TOGETHER_MOST 64
#define TOGETHER_NS (10 * NS_PER_S)
#define TOGETHER_BYTES ((size_t)TOGETHER_MOST * 8192)

static struct beginning *beginning_of(struct batch_item *item)
{
    return OWNER_OF(item, struct beginning, item);
}

/* Locks are taken in the same order by everyone. */
static int by_customer(const void *a, const void *b)
{
    struct batch_item *const *one = a, *const *other = b;
    return strcmp(beginning_of(*one)->customer_id, beginning_of(*other)->customer_id);
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
        const struct beginning *b = beginning_of(items[i]);
        json_open(&w, '{');
        json_key(&w, "number");
        json_i64(&w, (int64_t)i);
        add_text(&w, "customer", b->customer_id);
        add_text(&w, "direction", b->direction);
        add_text(&w, "source", b->source);
        add_text(&w, "destination", b->destination);
        add_text(&w, "sip_call_id", b->sip_call_id);
        add_text(&w, "from_tag", b->from_tag);
        add_text(&w, "confbridge", b->confbridge);
        if (b->cseq >= 0) {
            json_key(&w, "cseq");
            json_i64(&w, b->cseq);
        }
        json_close(&w, '}');
    }
    json_close(&w, ']');
}

static enum err begin_together(void *context, struct pg *pg, struct batch_item **items, size_t count)
{
    (void)context;
    qsort(items, count, sizeof(struct batch_item *), by_customer);
    AUTO(buf) struct buf set_ups = buf_new(TOGETHER_BYTES);
    write_set_ups(&set_ups, items, count);
    if (set_ups.failed)
        return ERR_MEMORY;
    for (size_t i = 0; i < count; i++)
        beginning_of(items[i])->sent = true;
    AUTO(tx) struct tx *tx = tx_begin(pg, clock_ns() + TOGETHER_NS);
    struct pg_call calls[] = {{.ask = &calls_hurry}, {.ask = &calls_begin, .args = {pg_text(buf_str(&set_ups).at)}}};
    const struct pg_call *rows = &calls[1];
    enum err e = tx_commit(tx, calls, COUNT_OF(calls));
    if (e)
        return e;
    for (int row = 0; row < rows->rows && !e; row++) {
        int64_t number = pg_get_i64(rows, row, 3);
        if (number >= 0 && (size_t)number < count && !pg_is_null(rows, row, 0))
            e = take_begun(beginning_of(items[number]), rows, row);
    }
    return e;
}

/* What failed together was undone, and is asked for alone; unless nobody knows whether it was. Then a set-up that bears the
 * switch's id is repeated, which is harmless, and any other is not. */
static void begun_together(void *context, struct batch_item *item, enum err e)
{
    (void)context;
    struct beginning *b = beginning_of(item);
    bool undone = e && e != ERR_TIMEOUT && e != ERR_CLOSED && e != ERR_MEMORY;
    if (!e && b->outcome.at)
        answer_begin(&b->db);
    else if (undone || !b->sent || b->sip_call_id)
        db_request_start(&b->db, atomic_load(&b->context->pool));
    else
        reply_fault(b->db.rq, e ? e : ERR_DATABASE);
}

enum err calls_open(struct calls *context, struct pool *pool)
{
    struct batch *set_ups = batch_new(&(struct batch_config){.pool = pool,
                                                             .most = TOGETHER_MOST,
                                                             .capacity = 4096,
                                                             .in_flight = 4,
                                                             .patience_ns = TOGETHER_NS,
                                                             .context = context,
                                                             .run = begin_together,
                                                             .done = begun_together});
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

/* One that hangs on other calls looks at those first, and so goes alone. */
static void begin(struct beginning *b)
{
    struct batch *set_ups = b->master || b->group ? NULL : atomic_load(&b->context->set_ups);
    if (!set_ups || batch_add(set_ups, &b->item))
        db_request_start(&b->db, atomic_load(&b->context->pool));
}

void call_begin_handle(struct request *rq, const struct caller *caller, void *calls)
{
    (void)caller;
    struct calls *context = calls;
    struct beginning *b = db_request_new(rq, sizeof *b, run_begin, answer_begin);
    if (!b)
        return;
    struct reading r;
    b->context = context;
    read_body(&r, rq);
    demand(&r, "customer_id", b->customer_id = uuid_of(&r, "customer_id"));
    demand(&r, "direction", b->direction = text_of(&r, "direction", NAME_MAX));
    if (b->direction && strcmp(b->direction, "incoming") != 0 && strcmp(b->direction, "outgoing") != 0)
        find_fault(&r, "direction", "is \"incoming\" or \"outgoing\"");
    demand(&r, "source", b->source = text_of(&r, "source", NAME_MAX));
    demand(&r, "destination", b->destination = text_of(&r, "destination", NAME_MAX));
    b->sip_call_id = text_of(&r, "sip_call_id", NAME_MAX);
    b->from_tag = text_of(&r, "from_tag", TAG_MAX);
    b->cseq = cseq_of(&r);
    b->master = uuid_of(&r, "master_call_id");
    b->confbridge = uuid_of(&r, "confbridge_id");
    b->group = uuid_of(&r, "groupcall_id");
    if (read_well(&r))
        begin(b);
}

/* How it goes on */

struct going_on {
    struct db_request db;
    char id[37];
    enum call_status to;
    const char *to_tag, *reason; /* NULL when not told */
    enum { GOING_DONE, GOING_NOWHERE, GOING_BACK } outcome;
    enum call_status now; /* with GOING_BACK */
    struct str call;
};

static enum err run_going_on(struct db_request *db, struct pg *pg)
{
    struct going_on *g = OWNER_OF(db, struct going_on, db);
    AUTO(tx) struct tx *tx = tx_begin(pg, db->job.deadline_ns);
    struct pg_call row = {.ask = &call_lock, .args = {pg_text(g->id)}};
    enum err e = tx_trip(tx, &row, 1);
    if (e)
        return e;
    g->outcome = GOING_NOWHERE;
    if (row.rows == 0)
        return OK;
    if ((e = call_status_parse(pg_get(&row, 0, 0), &g->now)))
        return e;
    enum call_step step = call_step(g->now, g->to);
    g->outcome = step == CALL_NO_WAY ? GOING_BACK : GOING_DONE;
    struct str call = pg_get(&row, 0, 1);
    struct pg_call change = {
        .ask = &call_go_on,
        .args = {pg_text(g->id), pg_text(call_status_name(g->to)), text_or_null(g->to_tag), text_or_null(g->reason)}};
    if (step == CALL_STAYS)
        g->call = arena_copy(db->rq->arena, call);
    if (step == CALL_GOES_ON) {
        if ((e = tx_commit(tx, &change, 1)))
            return e;
        g->call = arena_copy(db->rq->arena, pg_get(&change, 0, 0));
    }
    return g->outcome == GOING_DONE && !g->call.at ? ERR_MEMORY : OK;
}

static void answer_going_on(struct db_request *db)
{
    struct going_on *g = OWNER_OF(db, struct going_on, db);
    struct request *rq = db->rq;
    if (g->outcome == GOING_NOWHERE) {
        reply_refuse(rq, 404, "CALL_NOT_FOUND", "There is no call with this id.");
    } else if (g->outcome == GOING_BACK) {
        struct str message = arena_printf(rq->arena, "The call is %s and cannot become %s.", call_status_name(g->now),
                                          call_status_name(g->to));
        reply_refuse(rq, 409, "CALL_GOES_FORWARD_ONLY", message.at);
    } else {
        reply_body(rq, "application/json", g->call);
        reply_send(rq, 200);
    }
}

void call_progress_handle(struct request *rq, const struct caller *caller, void *calls)
{
    (void)caller;
    struct calls *context = calls;
    struct going_on *g = db_request_new(rq, sizeof *g, run_going_on, answer_going_on);
    if (!g || !request_id(rq, 0, g->id))
        return;
    struct reading r;
    read_body(&r, rq);
    const char *status = text_of(&r, "status", NAME_MAX);
    demand(&r, "status", status);
    if (status && call_status_parse(str_of(status), &g->to))
        find_fault(&r, "status", "is ringing, progressing, terminating, canceling or hangup");
    g->to_tag = text_of(&r, "to_tag", TAG_MAX);
    if (read_well(&r))
        db_request_start(&g->db, atomic_load(&context->pool));
}

void call_hangup_handle(struct request *rq, const struct caller *caller, void *calls)
{
    (void)caller;
    struct calls *context = calls;
    struct going_on *g = db_request_new(rq, sizeof *g, run_going_on, answer_going_on);
    if (!g || !request_id(rq, 0, g->id))
        return;
    struct reading r;
    if (!rq->body.len)
        rq->body = STR("{}"); /* there is nothing one must say */
    read_body(&r, rq);
    g->to = CALL_HANGUP;
    g->reason = text_of(&r, "reason", REASON_MAX);
    if (!g->reason || !*g->reason)
        g->reason = "normal";
    if (read_well(&r))
        db_request_start(&g->db, atomic_load(&context->pool));
}

/* Looking */

void call_show_handle(struct request *rq, const struct caller *caller, void *calls)
{
    (void)caller;
    struct calls *context = calls;
    char id[37];
    if (request_id(rq, 0, id))
        read_one(rq, atomic_load(&context->pool), &call_show, id, "CALL_NOT_FOUND", "There is no call with this id.");
}

void calls_list_handle(struct request *rq, const struct caller *caller, void *calls)
{
    (void)caller;
    struct calls *context = calls;
    struct str customer = request_query(rq, "customer_id");
    struct page page;
    if (customer.at && !str_is_uuid(customer)) {
        reply_refuse(rq, 400, "INVALID_ID", "customer_id must be a UUID.");
        return;
    }
    if (!page_read(rq, &page))
        return;
    struct pg_call call = {.ask = customer.at ? &calls_list_of : &calls_list_all,
                           .args = {pg_text(page.after ? page.after : "00000000-0000-0000-0000-000000000000"),
                                    pg_i64(page.limit + 1),
                                    customer.at ? pg_text(arena_copy(rq->arena, customer).at) : pg_null()}};
    read_page(rq, atomic_load(&context->pool), &page, &call);
}
