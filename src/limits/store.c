#include "limits/store.h"

#include "limits/admit_batch.h"

static const struct statement declare_tier = {
    .name = "limits_declare_tier",
    .sql = "SELECT reclaim.limit_declare_tier($1, $2::int4)",
    .params = 2,
    .columns = "limit_declare_tier:void",
};

static const struct statement prune_page = {
    .name = "limits_prune_page",
    .sql = "SELECT deleted, next FROM reclaim.limit_prune_page($1::int8, 256)",
    .params = 1,
    .columns = "deleted:int4 next:int8",
};

static const struct statement read_state = {
    .name = "limits_look",
    .sql = "SELECT c.count, CASE WHEN c.count < $2::int4 THEN 0 ELSE coalesce((SELECT w.wait_us"
           "  FROM reclaim.limit_wait($1, $2::int4, $3::int4, c.count, c.now) w), 0) END AS wait_us"
           " FROM (SELECT coalesce(sum(r.count), 0)::int4 AS count, t.now FROM (SELECT reclaim.limit_clock() AS now) t"
           "  LEFT JOIN LATERAL reclaim.limit_rows($1, $3::int4, t.now) r ON true GROUP BY t.now) c",
    .params = 3,
    .columns = "count:int4 wait_us:int8",
};

static const struct statement delete_counts = {
    .name = "limits_forget",
    .sql = "DELETE FROM reclaim.rate_limits WHERE key = $1",
    .params = 1,
    .columns = "",
};

/* Sent in the transaction of the deletion: a listener that receives it no longer finds the counts. */
static const struct statement notify = {
    .name = "limits_notify",
    .sql = "SELECT pg_catalog.pg_notify('" LIMITS_CHANNEL "', $1)::text AS sent",
    .params = 1,
    .columns = "sent:text",
};

const struct statement *const limits_statements[] = {&admission_decide, &declare_tier,  &prune_page,
                                                     &read_state,       &delete_counts, &notify};
const size_t limits_statement_count = COUNT_OF(limits_statements);

enum err limits_prune(struct pg *pg, const struct tier_table *tiers, int64_t deadline_ns)
{
    struct pg_call calls[TIER_COUNT];
    size_t count = 0;
    for (int tier = 0; tier < TIER_COUNT; tier++)
        if (tiers->of[tier].requests)
            calls[count++] = (struct pg_call){
                .ask = &declare_tier, .args = {pg_text(tier_name((enum tier)tier)), pg_i64(tiers->of[tier].seconds)}};
    enum err e = count ? pg_trip(pg, calls, count, deadline_ns) : OK;
    int64_t block = 0;
    for (bool more = true; !e && more;) { /* each page is a transaction of its own: what it deleted stays deleted */
        struct pg_call page = {.ask = &prune_page, .args = {pg_i64(block)}};
        if ((e = pg_ask(pg, &page, deadline_ns)))
            break;
        more = !pg_is_null(&page, 0, 1);
        block = more ? pg_get_i64(&page, 0, 1) : 0;
    }
    return e;
}

enum err limit_read_state(struct pg *pg, const struct counted *c, const struct limit *limit, int64_t deadline_ns,
                          struct limit_state *ret)
{
    char key[COUNTED_KEY_MAX];
    counted_key(c, key);
    struct pg_call call = {.ask = &read_state, .args = {pg_text(key), pg_i64(limit->requests), pg_i64(limit->seconds)}};
    enum err e = pg_ask(pg, &call, deadline_ns);
    if (!e)
        *ret = (struct limit_state){pg_get_i64(&call, 0, 0), pg_get_i64(&call, 0, 1)};
    return e;
}

enum err limits_reset(struct pg *pg, const struct counted *c, int64_t deadline_ns)
{
    char key[COUNTED_KEY_MAX];
    counted_key(c, key);
    struct pg_call calls[] = {{.ask = &delete_counts, .args = {pg_text(key)}},
                              {.ask = &notify, .args = {pg_text(key)}}};
    return pg_trip(pg, calls, COUNT_OF(calls), deadline_ns);
}
