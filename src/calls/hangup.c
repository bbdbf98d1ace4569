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
#include "calls/switches.h"
#include "pg/arrays.h"

#define PAGE 256
#define GONE_BYTES ((size_t)PAGE * 40)
#define FAILED_BYTES ((size_t)64 * 1024)
#define PAGE_BYTES ((size_t)1024 * 1024)
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
    const char *own_url; /* of the switch SWITCH_OF_SETTING; NULL: other instances have it, or none is recorded */
    struct work_kind kind, own_kind;
};

struct board { /* a switch that has calls of the page */
    struct phone_switch at;
    bool failed;
};

struct leg {
    struct pass *pass;
    struct board *board;
    char id[37];
    bool ringing; /* when it was read from the table */
    bool ended;
    struct switch_request request;
};

struct pass { /* as long as the item runs */
    struct hangup *context;
    struct work_item *item;
    char customer_id[37];
    bool many; /* the payload lists customers: each with calls gets an item of its own */
    enum { PASS_UPDATING, PASS_ASKING, PASS_PAUSED } phase;
    int64_t began_ns, commanded_ns;
    int pauses; /* in a row without a call that ended */
    bool abandoned;

    /* A page of calls to end: */
    struct arena *arena;
    struct leg *legs;
    struct board *boards;
    size_t count, board_count, next, under_way;
    bool any_ended;

    /* A round over all pages: */
    char after[37];     /* where the next page begins */
    bool queries_first; /* a command may have been sent before */
    bool may_command;   /* otherwise it only queries */
    bool any_asked, failed;
    struct buf failed_switches; /* not asked again in this round; an array literal without its end */

    /* The result of the worker: */
    struct job job;
    struct work_note note;
    struct work_timer timer;
    enum err err;
    char standing[16];
    int64_t left, marked;
    double seconds;
    bool elsewhere;   /* calls are at a switch that only other instances can ask */
    bool handed_over; /* and an item for these is queued */
};

static void update_table(struct pass *p);
static void send_requests(struct pass *p);

static void pass_free(void *handed)
{
    struct pass *p = handed;
    arena_free(p->arena);
    buf_free(&p->failed_switches);
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

/* The switch of a row; the rows of a page have few different ones. */
static enum err read_board(struct pass *p, const struct pg_call *rows, int row, struct board **ret)
{
    struct str name = pg_get(rows, row, 6);
    for (size_t i = 0; i < p->board_count; i++)
        if (str_eq(name, str_of(p->boards[i].at.name))) {
            *ret = &p->boards[i];
            return OK;
        }
    bool own = p->context->own_url && str_eq(name, STR(SWITCH_OF_SETTING));
    struct str copy = arena_copy(p->arena, name), url = own ? str_of(p->context->own_url) : pg_get(rows, row, 7);
    if (!own)
        url = arena_copy(p->arena, url);
    if (!copy.at || !url.at)
        return ERR_MEMORY;
    *ret = &p->boards[p->board_count++];
    **ret = (struct board){.at = kamailio(copy.at, url.at)};
    return OK;
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
    enum err e = str_copy(pg_get(rows, row, 0), ret->id, sizeof ret->id);
    return e ? e : read_board(p, rows, row, &ret->board);
}

static enum err read_page(struct pass *p, const struct pg_call *rows)
{
    arena_free(p->arena);
    p->count = p->board_count = 0;
    p->legs = NULL;
    if (!(p->arena = arena_new(4096, PAGE_BYTES)))
        return ERR_MEMORY;
    if (rows->rows && (!(p->legs = arena_take(p->arena, (size_t)rows->rows * sizeof *p->legs)) ||
                       !(p->boards = arena_take(p->arena, (size_t)rows->rows * sizeof *p->boards))))
        return ERR_MEMORY;
    for (int row = 0; row < rows->rows; row++) {
        enum err e = read_leg(p, rows, row, &p->legs[row]);
        if (e)
            return e;
        p->count++;
    }
    return OK;
}

static enum err hand_over_others(struct pass *p, struct pg *pg, int64_t deadline_ns)
{
    struct pg_call call = {.ask = &hangup_hand_over, .args = {pg_i64(p->item->id), pg_text(p->customer_id)}};
    if (!p->elsewhere || p->handed_over)
        return OK;
    enum err e = pg_ask(pg, &call, deadline_ns);
    if (!e)
        p->elsewhere = p->handed_over = pg_get_bool(&call, 0, 0);
    return e;
}

static enum err run_update(struct job *job, struct pg *pg)
{
    struct pass *p = OWNER_OF(job, struct pass, job);
    AUTO(buf) struct buf gone = buf_new(GONE_BYTES), failed = buf_new(FAILED_BYTES);
    struct pg_call calls[4], *end = &calls[1], *page = &calls[2], *others = &calls[3];
    bool has_own = p->context->own_url != NULL;
    size_t first = 1, count = has_own ? 3 : 4; /* one that has the setting can ask every switch */
    write_ended(p, &gone);
    buf_add(&failed, buf_str(&p->failed_switches));
    if (gone.len) {
        calls[0] = (struct pg_call){.ask = &calls_mark_gone, .args = {pg_text(array_end(&gone))}};
        first = 0;
    }
    *end = (struct pg_call){.ask = &calls_end, .args = {pg_text(p->customer_id)}};
    *page = (struct pg_call){.ask = &calls_ending,
                             .args = {pg_text(p->customer_id), pg_text(p->after), pg_i64(PAGE),
                                      pg_text(has_own ? "true" : "false"), pg_text(array_end(&failed))}};
    *others = (struct pg_call){.ask = &calls_elsewhere, .args = {pg_text(p->customer_id)}};
    enum err e = pg_trip(pg, calls + first, count - first, job->deadline_ns);
    if (e)
        return e;
    p->left = pg_get_i64(end, 0, 1);
    p->marked = pg_get_i64(end, 0, 2);
    p->seconds = pg_is_null(end, 0, 3) ? 0 : strtod(pg_get(end, 0, 3).at, NULL);
    p->elsewhere = !has_own && pg_get_bool(others, 0, 0);
    if (str_copy(pg_get(end, 0, 0), p->standing, sizeof p->standing))
        return ERR_DATABASE;
    if ((e = read_page(p, page)))
        return e;
    return hand_over_others(p, pg, job->deadline_ns);
}

static enum err run_many(struct job *job, struct pg *pg)
{
    struct pass *p = OWNER_OF(job, struct pass, job);
    struct pg_call call = {.ask = &calls_end_many, .args = {pg_text(p->item->payload.at)}};
    return pg_ask(pg, &call, job->deadline_ns);
}

static void table_updated(struct job *job, enum err e)
{
    struct pass *p = OWNER_OF(job, struct pass, job);
    p->err = e;
    work_post(p->item->engine, &p->note);
}

/* On the engine's thread */

static void begin_round(struct pass *p);

static void pause_over(struct work_timer *timer)
{
    struct pass *p = OWNER_OF(timer, struct pass, timer);
    begin_round(p);
    update_table(p);
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

static void begin_round(struct pass *p)
{
    memcpy(p->after, UUID_NIL, sizeof p->after);
    buf_clear(&p->failed_switches);
    p->failed = p->any_asked = false;
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

/* After the last page: what is left did not end at once, or is being ended by other items. */
static void round_done(struct pass *p)
{
    if (p->elsewhere && !p->any_asked && !p->failed) {
        log_info("calls left to an instance that has RECLAIM_SWITCH_RPC_URL", F_STR("customer", p->customer_id));
        finish(p, WORK_DONE, NULL);
        return;
    }
    p->queries_first = true;
    pause_pass(p);
}

static void continue_pass(struct work_note *note)
{
    struct pass *p = OWNER_OF(note, struct pass, note);
    if (p->err) {
        finish(p, p->abandoned ? WORK_RETURNED : WORK_AGAIN, err_name(p->err));
        return;
    }
    if (p->many) {
        finish(p, WORK_DONE, NULL);
        return;
    }
    if (p->marked)
        counter_add(&ended, (uint64_t)p->marked, reason_of(p));
    if (p->left == 0) {
        calls_ended(p);
    } else if (p->abandoned) {
        finish(p, WORK_RETURNED, NULL);
    } else if (p->count == 0) {
        round_done(p);
    } else {
        p->phase = PASS_ASKING;
        p->next = 0;
        p->any_ended = false;
        p->any_asked = true;
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
    p->job = (struct job){
        .run = p->many ? run_many : run_update, .done = table_updated, .deadline_ns = clock_ns() + UPDATE_NS};
    enum err e = pool_submit(work_pool(p->item->engine), &p->job);
    if (e) {
        p->err = e;
        continue_pass(&p->note);
    }
}

/* Every call of the page was asked about, except those at a switch that has just failed. */
static void page_done(struct pass *p)
{
    for (size_t i = 0; i < p->board_count; i++)
        if (p->boards[i].failed)
            array_add_text(&p->failed_switches, str_of(p->boards[i].at.name));
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
        if (!leg->board->failed)
            log_warn("the switch does not hang up: it cannot be reached, or its answer makes no sense",
                     F_STR("switch", leg->board->at.name),
                     F_STR("command", request->command == SWITCH_QUERY ? "query" : "end"),
                     F_STR("error", err_name(request->call.err)), F_INT("status", request->call.status));
        p->failed = leg->board->failed = true;
    } else if (request->result != SWITCH_ACCEPTED &&
               (p->may_command || (leg->ringing && request->result == SWITCH_ANSWERED))) {
        /* One that was answered before the cancel arrived needs a hang-up instead. */
        request->command = request->result == SWITCH_ANSWERED ? SWITCH_HANG_UP : SWITCH_CANCEL;
        p->under_way++;
        leg->board->at.send(&leg->board->at, work_client(p->item->engine), request);
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
    while (p->next < p->count && p->under_way < REQUESTS_AT_ONCE) {
        struct leg *leg = &p->legs[p->next++];
        if (leg->board->failed)
            continue;
        leg->request.done = switch_answered;
        if (must_query_first(p, &leg->request))
            leg->request.command = SWITCH_QUERY;
        p->under_way++;
        leg->board->at.send(&leg->board->at, work_client(p->item->engine), &leg->request);
    }
    if (!p->under_way)
        page_done(p);
}

static bool is_list_of_ids(const json_t *ids)
{
    for (size_t i = 0; i < json_array_size(ids); i++) {
        const char *id = json_string_value(json_array_get(ids, i));
        if (!id || !str_is_uuid(str_of(id)))
            return false;
    }
    return json_is_array(ids);
}

static enum err read_payload(struct pass *p)
{
    AUTO(json) json_t *payload = json_read_object(p->item->payload, NULL);
    const json_t *many = json_object_get(payload, "customer_ids");
    struct str id;
    p->many = many != NULL;
    if (many)
        return is_list_of_ids(many) ? OK : ERR_INPUT;
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
    p->failed_switches = buf_new(FAILED_BYTES);
    p->note.run = continue_pass;
    p->timer.due = pause_over;
    begin_round(p);
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
        p->legs[i].board->at.cancel(work_client(item->engine), &p->legs[i].request);
    finish(p, WORK_RETURNED, NULL);
}

struct hangup *hangup_new(const char *switch_url)
{
    struct hangup *h = calloc(1, sizeof *h);
    if (!h)
        return NULL;
    h->own_url = switch_url;
    h->kind = (struct work_kind){.name = HANGUP_KIND,
                                 .goes_on = true,
                                 .tries_max = 1000000, /* until it succeeds */
                                 .pause_first_ns = NS_PER_S / 2,
                                 .pause_most_ns = 10 * NS_PER_S,
                                 .context = h,
                                 .start = start,
                                 .abandon = abandon,
                                 .forget = pass_free};
    h->own_kind = h->kind;
    h->own_kind.name = HANGUP_OWN_KIND;
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

const struct work_kind *hangup_own_kind(struct hangup *h)
{
    return h->own_url ? &h->own_kind : NULL;
}
