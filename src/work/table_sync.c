/* Synchronizes the engine with the table: one trip records outcomes, renews leases and claims items. */
#include <stdlib.h>

#include "base/backoff.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/random.h"
#include "base/restored.h"
#include "pg/arrays.h"
#include "work/inside.h"

#define TRIP_NS (5 * NS_PER_S)
#define RETRY_NS (NS_PER_S / 2)
#define CENSUS_EVERY_NS (10 * NS_PER_S)
#define RECORD_MAX 256
#define RENEW_MAX 1024
#define CLAIM_MAX 64
/* Claims only a few items beyond those that flows hand over, so that other instances can claim the rest. */
#define CLAIM_WHILE_BELOW 256
#define LITERAL_MAX ((size_t)64 * 1024)
#define RESULTS_MAX ((size_t)RECORD_MAX * (WORK_PAYLOAD_MAX + 512))

METRIC_COUNTER(ended, "reclaim_work_items_total", "Runs of work items by outcome.", "kind", "outcome");
METRIC_GAUGE(waiting, "reclaim_work_waiting", "Work items in the table that are not done, up to 100000.");
METRIC_GAUGE(dead, "reclaim_work_dead", "Work items that failed for good.");
METRIC_GAUGE(oldest_due, "reclaim_work_oldest_due_seconds", "Seconds that the oldest due work item has been waiting.");

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

/* statement_timestamp(), since an index cannot be used with a volatile function; clock_timestamp() for the lease,
 * since the statement may have waited. */
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

/* Writing the statements' arguments */

static int64_t pause_before_next(const struct work_item *item)
{
    struct backoff pause = {item->kind->pause_first_ns, item->kind->pause_most_ns};
    return backoff_jittered_ns(pause, item->tries > 0 ? item->tries : 1);
}

static void add_result(struct table_sync *s, const struct work_item *item)
{
    struct json_writer *w = &s->results_json;
    json_open(w, '{');
    json_key(w, "payload");
    json_raw(w, item->payload);
    json_key(w, "outcome");
    json_str(w, str_of(item->result));
    json_key(w, "detail");
    json_str(w, str_of(item->result_detail));
    json_close(w, '}');
    s->result_count++;
}

static void add_outcome(struct table_sync *s, struct work_item *item)
{
    if (item->outcome == WORK_DROPPED)
        return; /* the instance that claimed it records it */
    if (item->result && s->engine->record && item->payload.len <= WORK_PAYLOAD_MAX)
        add_result(s, item);
    if (item->outcome == WORK_DONE) {
        array_add_i64(&s->texts[DONE], item->id);
        s->done_count++;
        return;
    }
    bool again = item->outcome == WORK_AGAIN;
    array_add_i64(&s->texts[IDS], item->id);
    array_add_plain(&s->texts[STATES], item->outcome == WORK_DEAD ? STR("dead") : STR("open"));
    array_add_i64(&s->texts[PAUSES], again ? pause_before_next(item) / NS_PER_US : 0);
    array_add_text(&s->texts[ERRORS], str_of(item->reason));
    s->changed_count++;
}

static void add_ended(struct engine *e)
{
    struct table_sync *s = &e->table_sync;
    while (e->ended.first && e->recording.count < RECORD_MAX) {
        struct work_item *item = e->ended.first;
        list_remove(&e->ended, item);
        item->state = ITEM_RECORDING;
        list_add(&e->recording, item);
        add_outcome(s, item);
    }
}

static bool needs_renewal(const struct engine *e, const struct work_item *item)
{
    int64_t left_ns = atomic_load(&item->leased_until_ns) - clock_ns();
    return !atomic_load(&item->lost) && left_ns < e->lease_ns / 5 * 3;
}

static void add_renewals(struct engine *e, const struct item_list *list)
{
    struct table_sync *s = &e->table_sync;
    for (struct work_item *i = list->first; i && s->renewal_count < RENEW_MAX; i = i->next) {
        if (!needs_renewal(e, i))
            continue;
        array_add_i64(&s->texts[RENEWALS], i->id);
        s->renewal_count++;
    }
}

static enum err write_arguments(struct engine *e)
{
    struct table_sync *s = &e->table_sync;
    for (size_t i = 0; i < COUNT_OF(s->texts); i++)
        buf_clear(&s->texts[i]);
    buf_clear(&s->results);
    s->results_json = json_to(&s->results);
    json_open(&s->results_json, '[');
    s->result_count = s->done_count = s->changed_count = s->renewal_count = s->claim_limit = s->renewed_count = 0;
    int64_t now_ns = clock_ns();
    if (atomic_exchange(&e->woken, false))
        s->claim_ns = now_ns;
    add_ended(e);
    add_renewals(e, &e->running);
    add_renewals(e, &e->waiting);
    size_t held = engine_item_count(e);
    if (!e->stopping && now_ns >= s->claim_ns && held < CLAIM_WHILE_BELOW)
        s->claim_limit = CLAIM_WHILE_BELOW - held < CLAIM_MAX ? CLAIM_WHILE_BELOW - held : CLAIM_MAX;
    s->census = now_ns >= s->census_ns;
    json_close(&s->results_json, ']');
    enum err err = s->results.failed;
    for (size_t i = 0; i < COUNT_OF(s->texts); i++) {
        (void)!array_end(&s->texts[i]);
        err = s->texts[i].failed ? s->texts[i].failed : err;
    }
    return err;
}

/* On a worker */

static void free_claimed(struct table_sync *s)
{
    for (struct work_item *item; (item = s->claimed.first);) {
        list_remove(&s->claimed, item);
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

static void read_claimed(struct table_sync *s, const struct pg_call *call)
{
    for (int row = 0; row < call->rows; row++) {
        const struct work_kind *kind = kind_named(s->engine, pg_get(call, row, 1));
        struct work_item *item = kind ? item_new(s->engine, kind, pg_get(call, row, 2)) : NULL;
        if (!item)
            continue; /* its lease expires, and an instance claims it again */
        item->id = pg_get_i64(call, row, 0);
        item->tries = (int)pg_get_i64(call, row, 3);
        atomic_store(&item->leased_until_ns, s->leased_from_ns + s->engine->lease_ns);
        list_add(&s->claimed, item);
    }
}

static void read_renewed(struct table_sync *s, const struct pg_call *call)
{
    s->renewed_count = 0;
    for (int row = 0; row < call->rows; row++)
        s->renewed[s->renewed_count++] = pg_get_i64(call, row, 0);
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

static enum err record_renew_claim(struct job *job, struct pg *pg)
{
    struct table_sync *s = OWNER_OF(job, struct table_sync, job);
    struct engine *e = s->engine;
    free_claimed(s); /* of a run that failed with a conflict */
    struct pg_arg lease_owner = pg_i64(e->lease_owner), lease = pg_i64(e->lease_ns / NS_PER_US);
    struct pg_call calls[6], *results = NULL, *renew = NULL, *claim = NULL, *census = NULL;
    size_t n = 0;
    if (s->done_count)
        calls[n++] = (struct pg_call){.ask = &work_delete, .args = {pg_text(s->texts[DONE].at), lease_owner}};
    if (s->changed_count)
        calls[n++] =
            (struct pg_call){.ask = &work_change,
                             .args = {pg_text(s->texts[IDS].at), pg_text(s->texts[STATES].at),
                                      pg_text(s->texts[PAUSES].at), pg_text(s->texts[ERRORS].at), lease_owner}};
    if (s->result_count)
        *(results = &calls[n++]) = (struct pg_call){.ask = e->record, .args = {pg_text(buf_str(&s->results).at)}};
    if (s->renewal_count)
        *(renew = &calls[n++]) =
            (struct pg_call){.ask = &work_renew, .args = {pg_text(s->texts[RENEWALS].at), lease, lease_owner}};
    if (s->claim_limit)
        *(claim = &calls[n++]) =
            (struct pg_call){.ask = &work_claim,
                             .args = {pg_text(restored_may_be() ? e->going_names.at : e->kind_names.at),
                                      pg_i64((int64_t)s->claim_limit), lease_owner, lease}};
    if (s->census)
        *(census = &calls[n++]) = (struct pg_call){.ask = &work_census};
    s->leased_from_ns = clock_ns();
    enum err err = pg_trip(pg, calls, n, job->deadline_ns);
    if (results && results->err == ERR_DATABASE) { /* must not keep the outcomes from being recorded */
        log_warn("results of work items not recorded", F_INT("items", (int64_t)s->result_count),
                 F_STR("sqlstate", results->sqlstate), F_STR("constraint", results->constraint));
        s->result_count = 0;
        return record_renew_claim(job, pg);
    }
    if (err)
        return err;
    if (renew)
        read_renewed(s, renew);
    if (claim)
        read_claimed(s, claim);
    if (census)
        read_census(e, census);
    return OK;
}

/* Back on the engine's thread */

static const char *const outcome_names[] = {"done", "again", "dead", "returned", "lost"};

static void discard_recorded(struct engine *e)
{
    for (struct work_item *item; (item = e->recording.first);) {
        counter_add(&ended, 1, item->kind->name, outcome_names[item->outcome]);
        if (item->outcome == WORK_DEAD)
            log_warn("work item failed for good", F_STR("kind", item->kind->name), F_INT("item", item->id),
                     F_INT("tries", item->tries), F_STR("reason", item->reason));
        engine_discard(e, item);
    }
}

/* Leases that were not renewed belong to another instance. */
static void apply_renewals(struct engine *e)
{
    struct table_sync *s = &e->table_sync;
    for (size_t i = 0; i < s->renewed_count; i++) {
        struct work_item *item = engine_find(e, s->renewed[i]);
        if (item)
            atomic_store(&item->leased_until_ns, s->leased_from_ns + e->lease_ns);
    }
    struct str rest = buf_str(&s->texts[RENEWALS]), part;
    rest = (struct str){rest.at + 1, rest.len - 2};
    while (s->renewed_count < s->renewal_count && str_split(&rest, ',', &part)) {
        int64_t id;
        struct work_item *item = str_to_i64(part, 1, INT64_MAX, &id) ? NULL : engine_find(e, id);
        if (!item || atomic_load(&item->leased_until_ns) == s->leased_from_ns + e->lease_ns)
            continue;
        atomic_store(&item->lost, true);
        log_warn("work item lost to another instance: its lease expired", F_STR("kind", item->kind->name),
                 F_INT("item", item->id));
    }
}

static void add_claimed(struct engine *e)
{
    for (struct work_item *item; (item = e->table_sync.claimed.first);) {
        list_remove(&e->table_sync.claimed, item);
        engine_add(e, item);
    }
}

static void schedule(struct engine *e)
{
    struct table_sync *s = &e->table_sync;
    int64_t now_ns = clock_ns();
    if (s->err) {
        s->next_ns = now_ns + RETRY_NS;
        return;
    }
    int64_t poll_ns = e->poll_ns * 3 / 4 + (int64_t)(random_unit() * (double)e->poll_ns / 4);
    bool more = s->claim_limit && s->claimed.count == s->claim_limit;
    if (s->claim_limit)
        s->claim_ns = more ? now_ns : now_ns + poll_ns;
    if (s->census)
        s->census_ns = now_ns + CENSUS_EVERY_NS;
    s->next_ns = more || s->renewal_count == RENEW_MAX ? now_ns : now_ns + poll_ns;
}

static void sync_finished(struct work_note *note)
{
    struct table_sync *s = OWNER_OF(note, struct table_sync, note);
    struct engine *e = s->engine;
    s->busy = false;
    schedule(e);
    if (!s->err) {
        discard_recorded(e);
        apply_renewals(e);
        add_claimed(e);
        return;
    }
    free_claimed(s);
    for (struct work_item *item; (item = e->recording.first);) {
        list_remove(&e->recording, item);
        item->state = ITEM_ENDED;
        list_add(&e->ended, item);
    }
}

static void sync_ran(struct job *job, enum err err)
{
    struct table_sync *s = OWNER_OF(job, struct table_sync, job);
    s->err = err;
    work_post(s->engine, &s->note);
}

void table_sync_start_if_due(struct engine *e)
{
    struct table_sync *s = &e->table_sync;
    if (s->busy || clock_ns() < table_sync_due_ns(e))
        return;
    enum err err = write_arguments(e);
    s->busy = true;
    s->job.deadline_ns = clock_ns() + TRIP_NS;
    if (err || (err = pool_submit(e->pool, &s->job))) {
        s->err = err;
        sync_finished(&s->note);
    }
}

/* Outcomes are recorded at once, unless the last trip failed. */
int64_t table_sync_due_ns(const struct engine *e)
{
    const struct table_sync *s = &e->table_sync;
    if (s->busy)
        return INT64_MAX;
    return (e->ended.count || atomic_load(&e->woken)) && !s->err ? 0 : s->next_ns;
}

bool table_sync_open(struct engine *e)
{
    struct table_sync *s = &e->table_sync;
    s->engine = e;
    s->job = (struct job){.run = record_renew_claim, .done = sync_ran};
    s->note.run = sync_finished;
    for (size_t i = 0; i < COUNT_OF(s->texts); i++)
        s->texts[i] = buf_new(LITERAL_MAX);
    s->results = buf_new(RESULTS_MAX);
    s->renewed = calloc(RENEW_MAX, sizeof *s->renewed);
    return s->renewed != NULL;
}

void table_sync_close(struct engine *e)
{
    struct table_sync *s = &e->table_sync;
    for (size_t i = 0; i < COUNT_OF(s->texts); i++)
        buf_free(&s->texts[i]);
    buf_free(&s->results);
    free(s->renewed);
}
