/* The overview: GET /v1/stats. */
#include "api/db_request.h"
#include "base/clock.h"
#include "base/json.h"
#include "console/statements.h"

#define STATS_BYTES_MAX ((size_t)1024 * 1024)
#define WATCH_NS (RATES_SAMPLE_S * NS_PER_S)

static const struct statement read_stats = {
    .name = "console_stats",
    .sql = "SELECT reclaim.console_stats($1::int8)::text AS stats",
    .params = 1,
    .columns = "stats:text",
};

struct stats_request {
    struct db_request db;
    struct console *console;
    struct str found;
};

static enum err run_stats(struct db_request *db, struct pg *pg);
static void answer_stats(struct db_request *db);

/* 1. On the loop. */
void stats_handle(struct request *rq, const struct caller *caller, void *console)
{
    (void)caller;
    struct stats_request *s = db_request_new(rq, sizeof *s, run_stats, answer_stats);
    if (!s)
        return;
    s->console = console;
    db_request_start(&s->db, atomic_load(&s->console->pool));
}

/* What the database knows, and behind it the requests of this instance. */
static void write_stats(struct console *c, struct str stats, struct buf *out)
{
    buf_add(out, (struct str){stats.at, stats.len - 1});
    buf_addz(out, ",\"instance_id\":");
    struct json_writer w = json_to(out);
    json_str(&w, str_of(c->instance.id));
    buf_addz(out, ",\"requests\":");
    w = json_to(out);
    json_open(&w, '{');
    json_key(&w, "hour");
    rates_write(&c->rates, 60, 60 / RATES_SAMPLE_S, &w);
    json_key(&w, "day");
    rates_write(&c->rates, 96, 900 / RATES_SAMPLE_S, &w);
    json_close(&w, '}');
    buf_addz(out, "}");
}

/* 2. On a worker. */
static enum err run_stats(struct db_request *db, struct pg *pg)
{
    struct stats_request *s = OWNER_OF(db, struct stats_request, db);
    struct pg_call call = {.ask = &read_stats, .args = {pg_i64(atomic_load(&s->console->deadline_ms))}};
    enum err e = pg_ask(pg, &call, db->job.deadline_ns);
    if (e)
        return e;
    AUTO(buf) struct buf out = buf_new(STATS_BYTES_MAX);
    write_stats(s->console, pg_get(&call, 0, 0), &out);
    s->found = arena_copy(db->rq->arena, buf_str(&out));
    return s->found.at ? OK : ERR_MEMORY;
}

/* 3. On the same worker. */
static void answer_stats(struct db_request *db)
{
    reply_body(db->rq, "application/json", OWNER_OF(db, struct stats_request, db)->found);
    reply_send(db->rq, 200);
}

void console_watch(struct console *c, unsigned long long answered, bool leads)
{
    struct pool *pool = atomic_load(&c->pool);
    int64_t now_ns = clock_ns();
    if (!pool || now_ns < c->instance.due_ns)
        return;
    c->instance.due_ns = now_ns + WATCH_NS;
    rates_sample(&c->rates, answered);
    rates_sample(&c->refusals, admission_refused());
    c->instance.refused_last_hour = (int64_t)rates_sum(&c->refusals, 3600 / RATES_SAMPLE_S);
    instance_record(&c->instance, pool, authenticator_lag_ms(c->authenticator), leads);
}

const struct statement *const console_statements[] = {
    &read_stats,          &instance_write,     &instance_delete, &instances_prune_old,   &audit_read,
    &timeline_read,       &dead_read,          &console_log,     &console_session_begin, &console_session_show,
    &console_session_end, &sessions_prune_old, &audit_kind_read};
const size_t console_statement_count = COUNT_OF(console_statements);
