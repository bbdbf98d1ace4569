#include "gate/gate_ended.h"

/* A transaction may commit long after it wrote its rows: those that had not ended by the last call ($1) are kept, so that
 * every instance can read them. Rows restored from another cluster may have numbers not assigned yet. */
static const struct statement prune = {
    .name = "gate_ended_prune",
    .sql = "WITH gone AS (DELETE FROM reclaim.gate_ended e WHERE e.created_at < clock_timestamp() - interval '1 hour'"
           " AND (e.changed_xid < $1::xid8"
           " OR e.changed_xid >= pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot())) RETURNING 1)"
           " SELECT pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot())::text AS finished,"
           " count(*) AS removed FROM gone",
    .params = 1,
    .columns = "finished:text removed:int8",
};

const struct statement *const gate_ended_statements[] = {&prune};
const size_t gate_ended_statement_count = COUNT_OF(gate_ended_statements);

enum err gate_ended_prune(struct gate_ended *gate_ended, struct pg *pg, int64_t deadline_ns)
{
    struct pg_call call = {.ask = &prune, .args = {pg_text(*gate_ended->finished ? gate_ended->finished : "0")}};
    enum err e = pg_ask(pg, &call, deadline_ns);
    return e ? e : str_copy(pg_get(&call, 0, 0), gate_ended->finished, sizeof gate_ended->finished);
}
