#include "console/instance.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/defs.h"
#include "base/random.h"

#ifndef RECLAIM_VERSION
#define RECLAIM_VERSION "unknown"
#endif

#define RECORD_NS (5 * NS_PER_S)

/* An instance that was restarted on the same address replaces the row that a crash left. */
const struct statement instance_write = {
    .name = "instance_write",
    .sql =
        "WITH replaced AS (DELETE FROM reclaim.instances WHERE name = $2 AND id <> $1::uuid)"
        " INSERT INTO reclaim.instances (id, name, version, started_at, seen_at, gate_lag_ms, is_leader, has_broker,"
        "   refused_last_hour)"
        " VALUES ($1::uuid, $2, $3, $4::text::timestamptz, pg_catalog.clock_timestamp(), $5::int8, $6::bool, $7::bool,"
        "   $8::int8)"
        " ON CONFLICT (id) DO UPDATE SET seen_at = pg_catalog.clock_timestamp(), gate_lag_ms = $5::int8,"
        " is_leader = $6::bool, has_broker = $7::bool, refused_last_hour = $8::int8",
    .params = 8,
    .columns = "",
};

const struct statement instance_delete = {
    .name = "instance_delete",
    .sql = "DELETE FROM reclaim.instances WHERE id = $1::uuid",
    .params = 1,
    .columns = "",
};

const struct statement instances_prune_old = {
    .name = "instances_prune",
    .sql = "DELETE FROM reclaim.instances WHERE seen_at < pg_catalog.clock_timestamp() - interval '24 hours'",
    .params = 0,
    .columns = "",
};

void instance_init(struct instance *i, const char *address, bool has_broker)
{
    i->has_broker = has_broker;
    char host[64] = "";
    if (gethostname(host, sizeof host) != 0 || !memchr(host, 0, sizeof host))
        host[sizeof host - 1] = '\0';
    random_uuid(i->id);
    (void)snprintf(i->name, sizeof i->name, "%s%s%s", host, *host ? " " : "", address);
    clock_format_us(clock_wall_us(), i->started_at);
}

static enum err run(struct job *job, struct pg *pg)
{
    struct instance *i = OWNER_OF(job, struct instance, job);
    struct pg_call gone = {.ask = &instance_delete, .args = {pg_text(i->id)}};
    struct pg_call call = {.ask = &instance_write,
                           .args = {pg_text(i->id), pg_text(i->name), pg_text(RECLAIM_VERSION), pg_text(i->started_at),
                                    i->lag_ms < 0 ? pg_null() : pg_i64(i->lag_ms), pg_text(i->leads ? "true" : "false"),
                                    pg_text(i->has_broker ? "true" : "false"), pg_i64(i->refused_last_hour)}};
    return pg_ask(pg, i->leaves ? &gone : &call, job->deadline_ns);
}

/* A failure is the database's, which others log; the next time is soon. */
static void done(struct job *job, enum err e)
{
    (void)e;
    atomic_store(&OWNER_OF(job, struct instance, job)->busy, false);
}

static void submit(struct instance *i, struct pool *pool)
{
    i->job = (struct job){run, done, clock_ns() + RECORD_NS, NULL};
    if (!pool || pool_submit(pool, &i->job))
        atomic_store(&i->busy, false);
}

void instance_record(struct instance *i, struct pool *pool, int64_t lag_ms, bool leads)
{
    if (atomic_exchange(&i->busy, true))
        return;
    i->lag_ms = lag_ms;
    i->leads = leads;
    submit(i, pool);
}

void instance_leave(struct instance *i, struct pool *pool)
{
    if (atomic_exchange(&i->busy, true))
        return;
    i->leaves = true;
    submit(i, pool);
}

enum err instances_prune(struct pg *pg, int64_t deadline_ns)
{
    struct pg_call call = {.ask = &instances_prune_old};
    return pg_ask(pg, &call, deadline_ns);
}
