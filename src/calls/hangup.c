#include "calls/hangup.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/metrics.h"
#include "calls/statements.h"
#include "calls/switch.h"

#define PAGE 256
#define GONE_BYTES ((size_t)PAGE * 40)
#define PAGE_BYTES ((size_t)512 * 1024)
#define ASK_AT_ONCE 16 /* requests to the switch under way */
#define TEND_NS (10 * NS_PER_S)
/* Between two looks at calls that do not go: short at first, since most are gone at once. */
#define PAUSE_FIRST_NS (20 * NS_PER_MS)
#define PAUSE_MOST_NS (NS_PER_S / 4)
#define PAUSE_IN_TROUBLE_NS (2 * NS_PER_S)
/* How long one that was told is only looked at: its other end may be slow to answer. */
#define TELL_AGAIN_NS (300 * NS_PER_MS)
/* After this long the item goes back to the table, so that a switch that is away takes no memory here. */
#define STAY_NS (30 * NS_PER_S)

METRIC_COUNTER(ended, "reclaim_calls_ended_total", "Calls ended because of their customer, by why.", "reason");
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
    bool rings; /* as far as we know */
    bool gone;
    struct switch_ask ask;
};

struct pass { /* as long as the item runs */
    struct hangup *context;
    struct work_item *item;
    char customer_id[37];
    enum { PASS_AT_TABLE, PASS_AT_SWITCH, PASS_RESTING } at;
    int64_t began_ns, told_ns, pause_ns;
    bool abandoned;

    /* A page of calls that are to go: */
    struct arena *arena;
    struct leg *legs;
    size_t count, next, under_way;
    char after[37];   /* where the next page begins */
    bool looks_first; /* they were told before */
    bool tells;       /* in this round, or only looks */
    bool any_gone, trouble;

    /* What comes back from the pool: */
    struct job job;
    struct work_note note;
    struct work_timer timer;
    enum err err;
    char standing[16];
    int64_t left, marked;
    double seconds;
};

static void tend(struct pass *p);
static void ask_on(struct pass *p);

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

/* On a worker: what is gone is written down, what is new is marked, the next page is read. */

static void write_gone(const struct pass *p, struct buf *out)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->legs[i].gone)
            buf_addf(out, "%s%s", out->len ? "," : "{", p->legs[i].id);
    if (out->len)
        buf_addz(out, "}");
}

static enum err read_leg(struct pass *p, const struct pg_call *rows, int row, struct leg *ret)
{
    struct str call_id = arena_copy(p->arena, pg_get(rows, row, 1)), from = arena_copy(p->arena, pg_get(rows, row, 2));
    if (!call_id.at || !from.at)
        return ERR_MEMORY;
    *ret = (struct leg){.pass = p, .rings = pg_get_bool(rows, row, 5)};
    ret->ask = (struct switch_ask){.call_id = call_id.at, .from_tag = from.at, .cseq = pg_get_i64(rows, row, 4)};
    ret->ask.wish = ret->rings ? SWITCH_CANCEL : SWITCH_HANG_UP;
    if (str_copy(pg_get(rows, row, 3), ret->ask.to_tag, sizeof ret->ask.to_tag))
        ret->ask.to_tag[0] = 0; /* a look will tell */
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

static enum err run_tend(struct job *job, struct pg *pg)
{
    struct pass *p = OWNER_OF(job, struct pass, job);
    AUTO(buf) struct buf gone = buf_new(GONE_BYTES);
    struct pg_call calls[3], *end = &calls[1];
    size_t first = 1;
    write_gone(p, &gone);
    if (gone.len) {
        calls[0] = (struct pg_call){.ask = &calls_mark_gone, .args = {pg_text(gone.at)}};
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

static void tended(struct job *job, enum err e)
{
    struct pass *p = OWNER_OF(job, struct pass, job);
    p->err = e;
    work_post(p->item->engine, &p->note);
}

/* On the engine's thread */

static void pause_over(struct work_timer *timer)
{
    tend(OWNER_OF(timer, struct pass, timer));
}

static void rest(struct pass *p)
{
    if (clock_ns() - p->began_ns > STAY_NS) {
        finish(p, WORK_AGAIN, p->trouble ? "the switch does not answer" : "calls do not go");
        return;
    }
    p->at = PASS_RESTING;
    work_at(p->item->engine, &p->timer, clock_ns() + p->pause_ns);
    int64_t most_ns = p->trouble ? PAUSE_IN_TROUBLE_NS : PAUSE_MOST_NS;
    p->pause_ns = p->pause_ns * 2 < most_ns ? p->pause_ns * 2 : most_ns;
}

static void from_the_start(struct pass *p)
{
    memcpy(p->after, "00000000-0000-0000-0000-000000000000", sizeof p->after);
    p->tells = clock_ns() - p->told_ns >= TELL_AGAIN_NS;
    if (p->tells)
        p->told_ns = clock_ns();
}

static void all_down(struct pass *p)
{
    if (*p->standing && strcmp(p->standing, "active") != 0) {
        histogram_observe(&down, p->seconds, reason_of(p));
        log_info("calls down", F_STR("customer", p->customer_id), F_STR("reason", reason_of(p)),
                 F_REAL("seconds", p->seconds));
    }
    finish(p, WORK_DONE, NULL);
}

static void go_on(struct work_note *note)
{
    struct pass *p = OWNER_OF(note, struct pass, note);
    if (p->err) {
        finish(p, p->abandoned ? WORK_RETURNED : WORK_AGAIN, err_name(p->err));
        return;
    }
    if (p->marked)
        counter_add(&ended, (uint64_t)p->marked, reason_of(p));
    if (p->left == 0) {
        all_down(p);
    } else if (p->abandoned) {
        finish(p, WORK_RETURNED, NULL);
    } else if (p->count == 0) { /* the last page is behind us, or others are ending what is left */
        from_the_start(p);
        p->looks_first = true;
        rest(p);
    } else {
        p->at = PASS_AT_SWITCH;
        p->next = 0;
        p->any_gone = p->trouble = false;
        ask_on(p);
    }
}

static void tend(struct pass *p)
{
    if (work_lease(p->item, TEND_NS) == WORK_LOST) {
        finish(p, WORK_DROPPED, NULL);
        return;
    }
    p->at = PASS_AT_TABLE;
    p->job = (struct job){.run = run_tend, .done = tended, .deadline_ns = clock_ns() + TEND_NS};
    enum err e = pool_submit(work_pool(p->item->engine), &p->job);
    if (e) {
        p->err = e;
        go_on(&p->note);
    }
}

/* Every call of the page was asked about. */
static void page_done(struct pass *p)
{
    if (p->trouble && !p->any_gone) {
        rest(p);
        return;
    }
    if (p->trouble)
        from_the_start(p);
    else
        memcpy(p->after, p->legs[p->count - 1].id, sizeof p->after);
    if (p->any_gone)
        p->pause_ns = PAUSE_FIRST_NS;
    tend(p);
}

static void asked(struct switch_ask *ask)
{
    struct leg *leg = OWNER_OF(ask, struct leg, ask);
    struct pass *p = leg->pass;
    p->under_way--;
    if (ask->answer == SWITCH_GONE) {
        leg->gone = p->any_gone = true;
    } else if (ask->answer == SWITCH_FAILED) {
        if (!p->trouble)
            log_warn("the switch does not hang up: it cannot be reached, or its answer makes no sense",
                     F_STR("switch", p->context->at.name), F_STR("wish", ask->wish == SWITCH_LOOK ? "look" : "end"),
                     F_STR("error", err_name(ask->call.err)), F_INT("status", ask->call.status));
        p->trouble = true;
    } else if (ask->answer != SWITCH_TOLD && (p->tells || (leg->rings && ask->answer == SWITCH_TALKS))) {
        /* One that was answered while we cancelled it was told the wrong thing. */
        ask->wish = ask->answer == SWITCH_TALKS ? SWITCH_HANG_UP : SWITCH_CANCEL;
        p->under_way++;
        p->context->at.ask(&p->context->at, work_client(p->item->engine), ask);
    }
    ask_on(p);
}

/* One that is hung up without its tag is not found, and one cancelled without its number neither: look first. */
static bool must_look(const struct pass *p, const struct switch_ask *ask)
{
    return p->looks_first || (ask->wish == SWITCH_HANG_UP ? !ask->to_tag[0] : !ask->cseq);
}

static void ask_on(struct pass *p)
{
    while (p->next < p->count && p->under_way < ASK_AT_ONCE && !p->trouble) {
        struct leg *leg = &p->legs[p->next++];
        leg->ask.done = asked;
        if (must_look(p, &leg->ask))
            leg->ask.wish = SWITCH_LOOK;
        p->under_way++;
        p->context->at.ask(&p->context->at, work_client(p->item->engine), &leg->ask);
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
    p->told_ns = p->began_ns - TELL_AGAIN_NS;
    p->pause_ns = PAUSE_FIRST_NS;
    p->note.run = go_on;
    p->timer.due = pause_over;
    from_the_start(p);
    if (read_payload(p)) {
        finish(p, WORK_DEAD, "the payload names no customer");
        return;
    }
    p->looks_first = item->tries > 1; /* somebody told the switch before */
    tend(p);
}

/* What is in the pool comes back, and finds the pass abandoned. */
static void abandon(struct work_item *item)
{
    struct pass *p = item->handed;
    p->abandoned = true;
    if (p->at == PASS_AT_TABLE)
        return;
    for (size_t i = 0; p->at == PASS_AT_SWITCH && i < p->next; i++)
        p->context->at.forget(work_client(item->engine), &p->legs[i].ask);
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
                                 .tries_max = 1000000, /* for as long as it takes */
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
