#include "pg/lanes.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"

#define STALLED_NS (NS_PER_S / 2)
#define EXPIRED_NS (2 * NS_PER_S)

METRIC_GAUGE(lane_connections, "reclaim_database_lane_connections", "Database connections that are up, by lane.",
             "lane");
METRIC_GAUGE(lane_busy, "reclaim_database_lane_busy", "Connections that run a job, by lane.", "lane");
METRIC_GAUGE(lane_queued, "reclaim_database_lane_queued", "Jobs that wait for a connection, by lane.", "lane");
METRIC_GAUGE(lane_stalled, "reclaim_database_lane_stalled",
             "1 while jobs of the lane wait and none is begun, or have waited past their deadline.", "lane");
METRIC_COUNTER(lane_refused, "reclaim_database_lane_refused_total", "Jobs that found their lane full.", "lane");

static const struct {
    const char *name;
    int sixteenths;
} lane_table[LANE_COUNT] = {
    [LANE_GATE] = {"gate", 2},           [LANE_LIMITS] = {"limits", 1},         [LANE_ACCOUNT] = {"account", 4},
    [LANE_ANONYMOUS] = {"anonymous", 6}, [LANE_BACKGROUND] = {"background", 3},
};

struct lanes {
    struct {
        struct pool *pool;
        bool stalled, without; /* connections, while the gate has some */
        uint64_t refused;      /* as last counted */
    } of[LANE_COUNT];
};

/* What rounding leaves over goes to the anonymous lane, which has the most to do. */
int lanes_share(int connections, enum lane lane)
{
    int shares[LANE_COUNT], left = connections;
    for (int i = 0; i < LANE_COUNT; i++) {
        shares[i] = connections * lane_table[i].sixteenths / 16;
        shares[i] = shares[i] ? shares[i] : 1;
        left -= shares[i];
    }
    shares[LANE_ANONYMOUS] += left > 0 ? left : 0;
    return shares[lane];
}

static void set_metrics(struct lanes *lanes, int lane, const struct pool_state *state);

struct lanes *lanes_start(const struct lanes_config *config, struct why *why)
{
    struct lanes *lanes = calloc(1, sizeof *lanes);
    if (!lanes) {
        (void)why_set(why, ERR_MEMORY, "no memory for the database connections");
        return NULL;
    }
    for (int i = 0; i < LANE_COUNT; i++) {
        struct pool_config pool = {.url = config->url,
                                   .prepare = config->prepare,
                                   .connections = lanes_share(config->connections, (enum lane)i),
                                   .queue_capacity = config->queue_capacity,
                                   .quiet = i != LANE_GATE,
                                   .pulse = config->pulse};
        if (!(lanes->of[i].pool = pool_start(&pool, why))) {
            lanes_stop(lanes, 0);
            return NULL;
        }
        set_metrics(lanes, i, &(struct pool_state){0});
    }
    return lanes;
}

void lanes_stop(struct lanes *lanes, int64_t deadline_ns)
{
    for (int i = 0; i < LANE_COUNT; i++)
        if (lanes->of[i].pool)
            pool_stop(lanes->of[i].pool, deadline_ns);
    free(lanes);
}

struct pool *lanes_pool(const struct lanes *lanes, enum lane lane)
{
    return lanes ? lanes->of[lane].pool : NULL;
}

struct pool_state lanes_read_state(struct lanes *lanes)
{
    struct pool_state sum = {0};
    for (int i = 0; i < LANE_COUNT; i++) {
        struct pool_state one = pool_read_state(lanes->of[i].pool);
        sum.connections += one.connections;
        sum.connected += one.connected;
        sum.busy += one.busy;
        sum.queued += one.queued;
        sum.stalled_ns = one.stalled_ns > sum.stalled_ns ? one.stalled_ns : sum.stalled_ns;
        sum.retries += one.retries;
        sum.reconnects += one.reconnects;
        sum.refused += one.refused;
    }
    return sum;
}

static bool is_stalled(const struct pool_state *state)
{
    return state->stalled_ns >= STALLED_NS || (state->expired_ns && clock_ns() - state->expired_ns < EXPIRED_NS);
}

bool lanes_is_stalled(struct lanes *lanes, enum lane lane)
{
    struct pool_state state = pool_read_state(lanes->of[lane].pool);
    return is_stalled(&state);
}

static void note_stall(struct lanes *lanes, int lane, const struct pool_state *state)
{
    bool stalled = is_stalled(state), was = lanes->of[lane].stalled;
    lanes->of[lane].stalled = stalled;
    if (stalled && !was)
        log_warn("jobs of a lane wait for the database", F_STR("lane", lane_table[lane].name),
                 F_INT("queued", (int64_t)state->queued), F_INT("connections", state->connected));
    else if (was && !stalled)
        log_info("the lane is served again", F_STR("lane", lane_table[lane].name));
}

/* An outage is logged by the gate's pool. */
static void note_without(struct lanes *lanes, int lane, const struct pool_state *state)
{
    bool without = !state->connected && pool_read_state(lanes->of[LANE_GATE].pool).connected;
    if (without && !lanes->of[lane].without)
        log_warn("a lane has no database connection: does max_connections leave room for RECLAIM_DATABASE_CONNECTIONS?",
                 F_STR("lane", lane_table[lane].name));
    lanes->of[lane].without = without;
}

static void set_metrics(struct lanes *lanes, int lane, const struct pool_state *state)
{
    const char *name = lane_table[lane].name;
    gauge_set(&lane_connections, state->connected, name);
    gauge_set(&lane_busy, state->busy, name);
    gauge_set(&lane_queued, (double)state->queued, name);
    gauge_set(&lane_stalled, lanes->of[lane].stalled, name);
    counter_add(&lane_refused, state->refused - lanes->of[lane].refused, name);
    lanes->of[lane].refused = state->refused;
}

void lanes_watch(struct lanes *lanes)
{
    for (int i = 0; i < LANE_COUNT; i++) {
        struct pool_state state = pool_read_state(lanes->of[i].pool);
        note_stall(lanes, i, &state);
        note_without(lanes, i, &state);
        set_metrics(lanes, i, &state);
    }
}
