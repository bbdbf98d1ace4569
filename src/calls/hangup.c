#include "calls/hangup.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/metrics.h"
#include "calls/statements.h"
#include "calls/switch.h"
#include "pg/arrays.h"

#define PAGE 256
#define GONE_BYTES ((size_t)PAGE * 40)
#define PAGE_BYTES ((size_t)512 * 1024)
#define REQUESTS_AT_ONCE 16 /* requests to the switch under way */
#define UPDATE_NS (10 * NS_PER_S)
/* Between two rounds over calls that have not ended: short at first, since most end at once. */
#define PAUSE_FIRST_NS (20 * NS_PER_MS)
#define PAUSE_MOST_NS (NS_PER_S / 4)
#define PAUSE_FAILED_NS (2 * NS_PER_S)
/* For this long after a command calls are only queried: their other end may be slow to answer. */
#define COMMAND_AGAIN_NS (300 * NS_PER_MS)
/* After this long the item goes back to the table, so that an unreachable switch takes no memory here. */
#define STAY_NS (30 * NS_PER_S)

METRIC_COUNTER(ended, "reclaim_calls_ended_total", "Calls ended because of their customer, by reason.", "reason");
METRIC_HISTOGRAM(down, "reclaim_calls_down_seconds", "From a customer's freeze or deletion until no call was left.",
                 metric_seconds, "reason");

const struct work_kind hangup_for_others = {.name = HANGUP_KIND};

struct hangup {
    struct phone_switch at;
    bool has_switch;
    struct work_kind kind;
};

struct leg {
    struct pass *pass;
    char id[37];
    bool ringing; /* when it was read from the table */
    bool ended;
    struct switch_request request;
};

struct pass { /* as long as the item runs */
    struct hangup *context;
    struct work_item *item;
    char customer_id[37];
    enum { PASS_UPDATING, PASS_ASKING, PASS_PAUSED } phase;
    int64_t began_ns, commanded_ns;
    int pauses; /* in a row without a call that ended */
    bool abandoned;

    /* A page of calls to end: */
    struct arena *arena;
    struct leg *legs;
    size_t count, next, under_way;
    char after[37];     /* where the next page begins */
    bool queries_first; /* a command may have been sent before */
    bool may_command;   /* in this round; otherwise it only queries */
    bool any_ended, failed;

    /* The result of the worker: */
    struct job job;
    struct work_note note;
    struct work_timer timer;
    enum err err;
    char standing[16];
    int64_t left, marked;
    double seconds;
};

static void update_table(struct pass *p);
static void send_requests(struct pass *p);

static void pass_free(void *handed)
{
    struct pass *p = handed;
    arena_free(p->arena);
    free(p);
}

static void finish(struct pass *p, enum work_outcome outcome, const char *reason)
{
    struct work_item *item = p->item;
    work_cancel(item->engine, &p->timer);
    work_end(item, outcome, reason);
}

static const char *reason_of(const struct pass *p)
{
    return strcmp(p->standing, "deleted") == 0 ? "account_deleted" : "account_frozen";
}

/* On a worker: writes which calls have ended, marks new ones, reads the next page. */

static void write_ended(const struct pass *p, struct buf *out)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->legs[i].ended)
            array_add_plain(out, str_of(p->legs[i].id));
}

static enum err read_leg(struct pass *p, const struct pg_call *rows, int row, struct leg *ret)
{
    struct str call_id = arena_copy(p->arena, pg_get(rows, row, 1)), from = arena_copy(p->arena, pg_get(rows, row, 2));
    if (!call_id.at || !from.at)
        return ERR_MEMORY;
    *ret = (struct leg){.pass = p, .ringing = pg_get_bool(rows, row, 5)};
    ret->request =
        (struct switch_request){.call_id = call_id.at, .from_tag = from.at, .cseq = pg_get_i64(rows, row, 4)};
    ret->request.command = ret->ringing ? SWITCH_CANCEL : SWITCH_HANG_UP;
    if (str_copy(pg_get(rows, row, 3), ret->request.to_tag, sizeof ret->request.to_tag))
        ret->request.to_tag[0] = 0; /* a query sets it */
    return str_copy(pg_get(rows, row, 0), ret->id, sizeof ret->id);
}

static enum err read_page(struct pass *p, const struct pg_call *rows)
{
    arena_free(p->arena);
    p->count = 0;
    p->legs = NULL;
    if (!(p->arena = arena_new(4096, PAGE_BYTES)))
        return ERR_MEMORY;
    if (rows->rows && !(p->legs = arena_take(p->arena, (size_t)rows->rows * sizeof *p->legs)))
        return ERR_MEMORY;
    for (int row = 0; row < rows->rows; row++) {
        enum err e = read_leg(p, rows, row, &p->legs[row]);
        if (e)
            return e;
        p->count++;
    }
    return OK;
}

static enum err run_update(struct job *job, struct pg *pg)
{
    struct pass *p = OWNER_OF(job, struct pass, job);
    AUTO(buf) struct buf gone = buf_new(GONE_BYTES);
    struct pg_call calls[3], *end = &calls[1];
    size_t first = 1;
    write_ended(p, &gone);
    if (gone.len) {
        calls[0] = (struct pg_call){.ask = &calls_mark_gone, .args = {pg_text(array_end(&gone))}};
        first = 0;
    }
    calls[1] = (struct pg_call){.ask = &calls_end,
                                .args = {pg_text(p->customer_id), pg_text(p->context->has_switch ? "true" : "false")}};
    calls[2] =
        (struct pg_call){.ask = &calls_ending, .args = {pg_text(p->customer_id), pg_text(p->after), pg_i64(PAGE)}};
    enum err e = pg_trip(pg, calls + first, COUNT_OF(calls) - first, job->deadline_ns);
    if (e)
        return e;
    p->left = pg_get_i64(end, 0, 1);
    p->marked = pg_get_i64(end, 0, 2);
    p->seconds = pg_is_null(end, 0, 3) ? 0 : strtod(pg_get(end, 0, 3).at, NULL);
    if (str_copy(pg_get(end, 0, 0), p->standing, sizeof p->standing))
        return ERR_DATABASE;
    return read_page(p, &calls[2]);
}

static void table_updated(struct job *job, enum err e)
{
    struct pass *p = OWNER_OF(job, struct pass, job);
    p->err = e;
    work_post(p->item->engine, &p->note);
}

/* On the engine's thread */

static void pause_over(struct work_timer *timer)
{
    update_table(OWNER_OF(timer, struct pass, timer));
}

static void pause_pass(struct pass *p)
{
    if (clock_ns() - p->began_ns > STAY_NS) {
        finish(p, WORK_AGAIN, p->failed ? "the switch does not answer" : "calls do not end");
        return;
    }
    p->phase = PASS_PAUSED;
    struct backoff pause = {PAUSE_FIRST_NS, p->failed ? PAUSE_FAILED_NS : PAUSE_MOST_NS};
    work_at(p->item->engine, &p->timer, clock_ns() + backoff_ns(pause, ++p->pauses));
}

static void restart_pages(struct pass *p)
{
    memcpy(p->after, UUID_NIL, sizeof p->after);
    p->may_command = clock_ns() - p->commanded_ns >= COMMAND_AGAIN_NS;
    if (p->may_command)
        p->commanded_ns = clock_ns();
}

static void calls_ended(struct pass *p)
{
    if (*p->standing && strcmp(p->standing, "active") != 0) {
        histogram_observe(&down, p->seconds, reason_of(p));
        log_info("calls down", F_STR("customer", p->customer_id), F_STR("reason", reason_of(p)),
                 F_REAL("seconds", p->seconds));
    }
    finish(p, WORK_DONE, NULL);
}

static void continue_pass(struct work_note *note)
{
    struct pass *p = OWNER_OF(note, struct pass, note);
    if (p->err) {
        finish(p, p->abandoned ? WORK_RETURNED : WORK_AGAIN, err_name(p->err));
        return;
    }
    if (p->marked)
        counter_add(&ended, (uint64_t)p->marked, reason_of(p));
    if (p->left == 0) {
        calls_ended(p);
    } else if (p->abandoned) {
        finish(p, WORK_RETURNED, NULL);
    } else if (p->count == 0) { /* after the last page, or other items are ending the rest */
        restart_pages(p);
        p->queries_first = true;
        pause_pass(p);
    } else {
        p->phase = PASS_ASKING;
        p->next = 0;
        p->any_ended = p->failed = false;
        send_requests(p);
    }
}

static void update_table(struct pass *p)
{
    if (work_lease(p->item, UPDATE_NS) == WORK_LOST) {
        finish(p, WORK_DROPPED, NULL);
        return;
    }
    p->phase = PASS_UPDATING;
    p->job = (struct job){.run = run_update, .done = table_updated, .deadline_ns = clock_ns() + UPDATE_NS};
    enum err e = pool_submit(work_pool(p->item->engine), &p->job);
    if (e) {
        p->err = e;
        continue_pass(&p->note);
    }
}

/* The switch has answered for every call of the page. */
static void page_done(struct pass *p)
{
    if (p->failed && !p->any_ended) {
        pause_pass(p);
        return;
    }
    if (p->failed)
        restart_pages(p);
    else
        memcpy(p->after, p->legs[p->count - 1].id, sizeof p->after);
    if (p->any_ended)
        p->pauses = 0;
    update_table(p);
}

static void switch_answered(struct switch_request *request)
{
    struct leg *leg = OWNER_OF(request, struct leg, request);
    struct pass *p = leg->pass;
    p->under_way--;
    if (request->result == SWITCH_GONE) {
        leg->ended = p->any_ended = true;
    } else if (request->result == SWITCH_FAILED) {
        if (!p->failed)
            log_warn("the switch does not hang up: it cannot be reached, or its answer makes no sense",
                     F_STR("switch", p->context->at.name),
                     F_STR("command", request->command == SWITCH_QUERY ? "query" : "end"),
                     F_STR("error", err_name(request->call.err)), F_INT("status", request->call.status));
        p->failed = true;
    } else if (request->result != SWITCH_ACCEPTED &&
               (p->may_command || (leg->ringing && request->result == SWITCH_ANSWERED))) {
        /* One that was answered before the cancel arrived needs a hang-up instead. */
        request->command = request->result == SWITCH_ANSWERED ? SWITCH_HANG_UP : SWITCH_CANCEL;
        p->under_way++;
        p->context->at.send(&p->context->at, work_client(p->item->engine), request);
    }
    send_requests(p);
}

/* A hang-up needs the tag and a cancel the CSeq: a query finds them. */
static bool must_query_first(const struct pass *p, const struct switch_request *request)
{
    return p->queries_first || (request->command == SWITCH_HANG_UP ? !request->to_tag[0] : !request->cseq);
}

static void send_requests(struct pass *p)
{
    while (p->next < p->count && p->under_way < REQUESTS_AT_ONCE && !p->failed) {
        struct leg *leg = &p->legs[p->next++];
        leg->request.done = switch_answered;
        if (must_query_first(p, &leg->request))
            leg->request.command = SWITCH_QUERY;
        p->under_way++;
        p->context->at.send(&p->context->at, work_client(p->item->engine), &leg->request);
    }
    if (!p->under_way)
        page_done(p);
}

static enum err read_payload(struct pass *p)
{
    AUTO(json) json_t *payload = json_read_object(p->item->payload, NULL);
    struct str id;
    if (!payload || json_get_str(payload, "customer_id", &id) || !str_is_uuid(id))
        return ERR_INPUT;
    return str_copy(id, p->customer_id, sizeof p->customer_id);
}

static void start(struct work_item *item)
{
    struct pass *p = calloc(1, sizeof *p);
    if (!p) {
        work_end(item, WORK_AGAIN, "no memory");
        return;
    }
    item->handed = p;
    p->context = item->kind->context;
    p->item = item;
    p->began_ns = clock_ns();
    p->commanded_ns = p->began_ns - COMMAND_AGAIN_NS;
    p->pauses = 0;
    p->note.run = continue_pass;
    p->timer.due = pause_over;
    restart_pages(p);
    if (read_payload(p)) {
        finish(p, WORK_DEAD, "the payload names no customer");
        return;
    }
    p->queries_first = item->tries > 1; /* an earlier try may have sent commands */
    update_table(p);
}

/* A job in the pool ends first; table_updated() then finds the pass abandoned. */
static void abandon(struct work_item *item)
{
    struct pass *p = item->handed;
    p->abandoned = true;
    if (p->phase == PASS_UPDATING)
        return;
    for (size_t i = 0; p->phase == PASS_ASKING && i < p->next; i++)
        p->context->at.cancel(work_client(item->engine), &p->legs[i].request);
    finish(p, WORK_RETURNED, NULL);
}

struct hangup *hangup_new(const char *switch_url)
{
    struct hangup *h = calloc(1, sizeof *h);
    if (!h)
        return NULL;
    h->has_switch = switch_url != NULL;
    h->at = kamailio(switch_url);
    h->kind = (struct work_kind){.name = HANGUP_KIND,
                                 .tries_max = 1000000, /* until it succeeds */
                                 .pause_first_ns = NS_PER_S / 2,
                                 .pause_most_ns = 10 * NS_PER_S,
                                 .context = h,
                                 .start = start,
                                 .abandon = abandon,
                                 .forget = pass_free};
    return h;
}

void hangup_free(struct hangup *h)
{
    free(h);
}

const struct work_kind *hangup_kind(struct hangup *h)
{
    return &h->kind;
}
