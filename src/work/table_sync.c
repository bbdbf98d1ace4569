/* The table's side of the engine: in one trip, what has ended is told, leases are renewed and new items are claimed. */
#include <stdlib.h>

#include "base/backoff.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/random.h"
#include "pg/arrays.h"
#include "work/inside.h"

#define TRIP_NS (5 * NS_PER_S)
#define TRY_AGAIN_NS (NS_PER_S / 2)
#define CENSUS_EVERY_NS (10 * NS_PER_S)
#define SETTLE_MOST 256
#define RENEW_MOST 1024
#define CLAIM_MOST 64
/* Claimed items come on top of what flows hand over, and stay few: another instance may have more time for them. */
#define CLAIM_WHILE_BELOW 256
#define LITERAL_MAX ((size_t)64 * 1024)

METRIC_COUNTER(ended, "reclaim_work_items_total", "Runs of work items, by how they ended.", "kind", "outcome");
METRIC_GAUGE(waiting, "reclaim_work_waiting", "Work items in the table that are not done, up to 100000.");
METRIC_GAUGE(dead, "reclaim_work_dead", "Work items that were given up.");
METRIC_GAUGE(oldest_due, "reclaim_work_oldest_due_seconds", "How long the oldest due work item has been waiting.");

const struct statement work_delete = {
    .name = "work_delete",
    .sql = "DELETE FROM reclaim.work_items WHERE id = ANY ($1::int8[]) AND leased_by = $2",
    .params = 2,
    .columns = "",
};

const struct statement work_change = {
    .name = "work_change",
    .sql = "UPDATE reclaim.work_items w SET state = s.state, leased_until = NULL, leased_by = NULL,"
           " due_at = pg_catalog.clock_timestamp() + s.pause_us * interval '1 microsecond',"
           " last_error = coalesce(s.error, w.last_error), updated_at = pg_catalog.clock_timestamp()"
           " FROM ROWS FROM (pg_catalog.unnest($1::int8[]), pg_catalog.unnest($2::text[]),"
           "   pg_catalog.unnest($3::int8[]), pg_catalog.unnest($4::text[])) AS s(id, state, pause_us, error)"
           " WHERE w.id = s.id AND w.leased_by = $5",
    .params = 5,
    .columns = "",
};

const struct statement work_renew = {
    .name = "work_renew",
    .sql = "UPDATE reclaim.work_items"
           " SET leased_until = pg_catalog.clock_timestamp() + $2::int8 * interval '1 microsecond'"
           " WHERE id = ANY ($1::int8[]) AND leased_by = $3 RETURNING id",
    .params = 3,
    .columns = "id:int8",
};

/* The condition must not be volatile, or the index would not serve it; the lease's end must be, since a transaction's
 * time is that of its beginning. */
const struct statement work_claim = {
    .name = "work_claim",
    .sql = "WITH ready AS MATERIALIZED (SELECT id FROM reclaim.work_items WHERE state = 'open'"
           "   AND coalesce(leased_until, due_at) <= pg_catalog.statement_timestamp() AND kind = ANY ($1::text[])"
           "   ORDER BY coalesce(leased_until, due_at) LIMIT $2 FOR UPDATE SKIP LOCKED)"
           " UPDATE reclaim.work_items w SET tries = w.tries + 1, leased_by = $3,"
           " leased_until = pg_catalog.clock_timestamp() + $4::int8 * interval '1 microsecond',"
           " updated_at = pg_catalog.clock_timestamp()"
           " FROM ready WHERE w.id = ready.id RETURNING w.id, w.kind, w.payload::text AS payload, w.tries",
    .params = 4,
    .columns = "id:int8 kind:text payload:text tries:int4",
};

const struct statement work_census = {
    .name = "work_census",
    .sql = "SELECT (SELECT pg_catalog.count(*) FROM (SELECT FROM reclaim.work_items WHERE state = 'open'"
           "   LIMIT 100000) o) AS waiting,"
           " (SELECT pg_catalog.count(*) FROM reclaim.work_items WHERE state = 'dead') AS dead,"
           " coalesce((SELECT pg_catalog.date_part('epoch', pg_catalog.statement_timestamp() -"
           "   coalesce(leased_until, due_at)) * 1000 FROM reclaim.work_items WHERE state = 'open'"
           "   ORDER BY coalesce(leased_until, due_at) LIMIT 1), 0)::int8 AS oldest_ms",
    .params = 0,
    .columns = "waiting:int8 dead:int8 oldest_ms:int8",
};

/* Writing what is to be told */

static int64_t pause_before_next(const struct work_item *item)
{
    struct backoff pause = {item->kind->pause_first_ns, item->kind->pause_most_ns};
    return backoff_jittered_ns(pause, item->tries > 0 ? item->tries : 1);
}

static void tell(struct ledger *l, struct work_item *item)
{
    if (item->outcome == WORK_DROPPED)
        return; /* another's to tell */
    if (item->outcome == WORK_DONE) {
        array_add_i64(&l->texts[DONE], item->id);
        l->done_count++;
        return;
    }
    bool again = item->outcome == WORK_AGAIN;
    array_add_i64(&l->texts[IDS], item->id);
    array_add_plain(&l->texts[STATES], item->outcome == WORK_DEAD ? STR("dead") : STR("open"));
    array_add_i64(&l->texts[PAUSES], again ? pause_before_next(item) / NS_PER_US : 0);
    array_add_text(&l->texts[ERRORS], str_of(item->reason));
    l->changed_count++;
}

static void tell_ended(struct engine *e)
{
    struct ledger *l = &e->ledger;
    while (e->ended.first && e->settling.count < SETTLE_MOST) {
        struct work_item *item = e->ended.first;
        list_take(&e->ended, item);
        item->state = ITEM_SETTLING;
        list_add(&e->settling, item);
        tell(l, item);
    }
}

static bool wants_renewal(const struct engine *e, const struct work_item *item)
{
    int64_t left_ns = atomic_load(&item->leased_until_ns) - clock_ns();
    return !atomic_load(&item->lost) && left_ns < e->lease_ns / 5 * 3;
}

static void ask_renewals(struct engine *e, const struct item_list *list)
{
    struct ledger *l = &e->ledger;
    for (struct work_item *i = list->first; i && l->renewal_count < RENEW_MOST; i = i->next) {
        if (!wants_renewal(e, i))
            continue;
        array_add_i64(&l->texts[RENEWALS], i->id);
        l->renewal_count++;
    }
}

static enum err write_questions(struct engine *e)
{
    struct ledger *l = &e->ledger;
    for (size_t i = 0; i < COUNT_OF(l->texts); i++)
        buf_clear(&l->texts[i]);
    l->done_count = l->changed_count = l->renewal_count = l->claim_most = l->renewed_count = 0;
    int64_t now_ns = clock_ns();
    tell_ended(e);
    ask_renewals(e, &e->running);
    ask_renewals(e, &e->waiting);
    size_t held = engine_item_count(e);
    if (!e->stopping && now_ns >= l->claim_ns && held < CLAIM_WHILE_BELOW)
        l->claim_most = CLAIM_WHILE_BELOW - held < CLAIM_MOST ? CLAIM_WHILE_BELOW - held : CLAIM_MOST;
    l->census = now_ns >= l->census_ns;
    enum err err = OK;
    for (size_t i = 0; i < COUNT_OF(l->texts); i++) {
        (void)!array_end(&l->texts[i]);
        err = l->texts[i].failed ? l->texts[i].failed : err;
    }
    return err;
}

/* On a worker */

static void forget_claimed(struct ledger *l)
{
    for (struct work_item *item; (item = l->claimed.first);) {
        list_take(&l->claimed, item);
        item_free(item);
    }
}

static const struct work_kind *kind_named(const struct engine *e, struct str name)
{
    for (size_t i = 0; i < e->kind_count; i++)
        if (str_eq(name, str_of(e->kinds[i]->name)))
            return e->kinds[i];
    return NULL;
}

static void read_claimed(struct ledger *l, const struct pg_call *call)
{
    for (int row = 0; row < call->rows; row++) {
        const struct work_kind *kind = kind_named(l->engine, pg_get(call, row, 1));
        struct work_item *item = kind ? item_new(l->engine, kind, pg_get(call, row, 2)) : NULL;
        if (!item)
            continue; /* its lease runs out, and someone with more memory takes it */
        item->id = pg_get_i64(call, row, 0);
        item->tries = (int)pg_get_i64(call, row, 3);
        atomic_store(&item->leased_until_ns, l->leased_from_ns + l->engine->lease_ns);
        list_add(&l->claimed, item);
    }
}

static void read_renewed(struct ledger *l, const struct pg_call *call)
{
    l->renewed_count = 0;
    for (int row = 0; row < call->rows; row++)
        l->renewed[l->renewed_count++] = pg_get_i64(call, row, 0);
}

static void read_census(struct engine *e, const struct pg_call *call)
{
    int64_t oldest_ms = pg_get_i64(call, 0, 2);
    pthread_mutex_lock(&e->lock);
    e->state.waiting = pg_get_i64(call, 0, 0);
    e->state.dead = pg_get_i64(call, 0, 1);
    e->state.oldest_due_ms = oldest_ms > 0 ? oldest_ms : 0;
    struct work_state state = e->state;
    pthread_mutex_unlock(&e->lock);
    gauge_set(&waiting, (double)state.waiting);
    gauge_set(&dead, (double)state.dead);
    gauge_set(&oldest_due, (double)state.oldest_due_ms / 1000);
}

static enum err settle_renew_claim(struct job *job, struct pg *pg)
{
    struct ledger *l = OWNER_OF(job, struct ledger, job);
    struct engine *e = l->engine;
    forget_claimed(l); /* of a run that met a conflict */
    struct pg_arg number = pg_i64(e->number), lease = pg_i64(e->lease_ns / NS_PER_US);
    struct pg_call calls[5], *renew = NULL, *claim = NULL, *census = NULL;
    size_t n = 0;
    if (l->done_count)
        calls[n++] = (struct pg_call){.ask = &work_delete, .args = {pg_text(l->texts[DONE].at), number}};
    if (l->changed_count)
        calls[n++] = (struct pg_call){.ask = &work_change,
                                      .args = {pg_text(l->texts[IDS].at), pg_text(l->texts[STATES].at),
                                               pg_text(l->texts[PAUSES].at), pg_text(l->texts[ERRORS].at), number}};
    if (l->renewal_count)
        *(renew = &calls[n++]) =
            (struct pg_call){.ask = &work_renew, .args = {pg_text(l->texts[RENEWALS].at), lease, number}};
    if (l->claim_most)
        *(claim = &calls[n++]) = (struct pg_call){
            .ask = &work_claim, .args = {pg_text(e->kind_names.at), pg_i64((int64_t)l->claim_most), number, lease}};
    if (l->census)
        *(census = &calls[n++]) = (struct pg_call){.ask = &work_census};
    l->leased_from_ns = clock_ns();
    enum err err = pg_trip(pg, calls, n, job->deadline_ns);
    if (err)
        return err;
    if (renew)
        read_renewed(l, renew);
    if (claim)
        read_claimed(l, claim);
    if (census)
        read_census(e, census);
    return OK;
}

/* Back on the engine's thread */

static const char *const outcome_names[] = {"done", "again", "dead", "returned", "lost"};

static void take_settled(struct engine *e)
{
    for (struct work_item *item; (item = e->settling.first);) {
        counter_add(&ended, 1, item->kind->name, outcome_names[item->outcome]);
        if (item->outcome == WORK_DEAD)
            log_warn("work given up", F_STR("kind", item->kind->name), F_INT("item", item->id),
                     F_INT("tries", item->tries), F_STR("reason", item->reason));
        engine_discard(e, item);
    }
}

/* What was asked for and is not among the renewed belongs to another by now. */
static void take_renewals(struct engine *e)
{
    struct ledger *l = &e->ledger;
    for (size_t i = 0; i < l->renewed_count; i++) {
        struct work_item *item = engine_find(e, l->renewed[i]);
        if (item)
            atomic_store(&item->leased_until_ns, l->leased_from_ns + e->lease_ns);
    }
    struct str rest = buf_str(&l->texts[RENEWALS]), part;
    rest = (struct str){rest.at + 1, rest.len - 2};
    while (l->renewed_count < l->renewal_count && str_split(&rest, ',', &part)) {
        int64_t id;
        struct work_item *item = str_to_i64(part, 1, INT64_MAX, &id) ? NULL : engine_find(e, id);
        if (!item || atomic_load(&item->leased_until_ns) == l->leased_from_ns + e->lease_ns)
            continue;
        atomic_store(&item->lost, true);
        log_warn("work lost to another instance: its lease had run out", F_STR("kind", item->kind->name),
                 F_INT("item", item->id));
    }
}

static void take_claimed(struct engine *e)
{
    for (struct work_item *item; (item = e->ledger.claimed.first);) {
        list_take(&e->ledger.claimed, item);
        engine_adopt(e, item);
    }
}

static void schedule(struct engine *e)
{
    struct ledger *l = &e->ledger;
    int64_t now_ns = clock_ns();
    if (l->err) {
        l->next_ns = now_ns + TRY_AGAIN_NS;
        return;
    }
    int64_t poll_ns = e->poll_ns * 3 / 4 + (int64_t)(random_unit() * (double)e->poll_ns / 4);
    bool more = l->claim_most && l->claimed.count == l->claim_most;
    if (l->claim_most)
        l->claim_ns = more ? now_ns : now_ns + poll_ns;
    if (l->census)
        l->census_ns = now_ns + CENSUS_EVERY_NS;
    l->next_ns = more || l->renewal_count == RENEW_MOST ? now_ns : now_ns + poll_ns;
}

static void come_back(struct work_note *note)
{
    struct ledger *l = OWNER_OF(note, struct ledger, note);
    struct engine *e = l->engine;
    l->busy = false;
    schedule(e);
    if (!l->err) {
        take_settled(e);
        take_renewals(e);
        take_claimed(e);
        return;
    }
    forget_claimed(l);
    for (struct work_item *item; (item = e->settling.first);) {
        list_take(&e->settling, item);
        item->state = ITEM_ENDED;
        list_add(&e->ended, item);
    }
}

static void trip_over(struct job *job, enum err err)
{
    struct ledger *l = OWNER_OF(job, struct ledger, job);
    l->err = err;
    work_post(l->engine, &l->note);
}

void ledger_tend(struct engine *e)
{
    struct ledger *l = &e->ledger;
    if (l->busy || clock_ns() < ledger_due_ns(e))
        return;
    enum err err = write_questions(e);
    l->busy = true;
    l->job.deadline_ns = clock_ns() + TRIP_NS;
    if (err || (err = pool_submit(e->pool, &l->job))) {
        l->err = err;
        come_back(&l->note);
    }
}

/* What has ended is told at once, unless the last trip failed. */
int64_t ledger_due_ns(const struct engine *e)
{
    const struct ledger *l = &e->ledger;
    if (l->busy)
        return INT64_MAX;
    return e->ended.count && !l->err ? 0 : l->next_ns;
}

bool ledger_open(struct engine *e)
{
    struct ledger *l = &e->ledger;
    l->engine = e;
    l->job = (struct job){.run = settle_renew_claim, .done = trip_over};
    l->note.run = come_back;
    for (size_t i = 0; i < COUNT_OF(l->texts); i++)
        l->texts[i] = buf_new(LITERAL_MAX);
    l->renewed = calloc(RENEW_MOST, sizeof *l->renewed);
    return l->renewed != NULL;
}

void ledger_close(struct engine *e)
{
    struct ledger *l = &e->ledger;
    for (size_t i = 0; i < COUNT_OF(l->texts); i++)
        buf_free(&l->texts[i]);
    free(l->renewed);
}
