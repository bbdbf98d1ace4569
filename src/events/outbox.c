#include "events/outbox.h"

#include "base/clock.h"
#include "base/json.h"

#define SOURCE "/reclaim/customers"
#define FETCH_BYTES 8388608
#define EVENT_DATA_MAX 16000000 /* as EVENT_TOO_LARGE says */
#define PRUNE_BATCH 5000

#define EVENT_COLUMNS                                                                                                  \
    "position, id::text AS id, type, customer_id::text AS customer, epoch::int8 AS epoch, sequence,"                   \
    " to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') AS time,"                            \
    " (date_part('epoch', clock_timestamp() - created_at) * 1000)::int8 AS age_ms, payload::text AS data"
/* The columns of the rows that `rows` selects, in the order of position, up to FETCH_BYTES of data but one row at least: the
 * memory for a page has a bound. The data of a row larger than EVENT_DATA_MAX is null. */
#define EVENTS_WITHIN(rows)                                                                                            \
    "SELECT position, id, type, customer, epoch, sequence, time, age_ms,"                                              \
    " CASE WHEN bytes <= " TEXT_OF(                                                                                    \
        EVENT_DATA_MAX) " THEN data END AS data FROM (SELECT e.*, octet_length(data) AS bytes,"                        \
                        " sum(octet_length(data)) OVER (ORDER BY position ROWS UNBOUNDED PRECEDING) AS up_to FROM "    \
                        "(" rows ") e) e"                                                                              \
                        " WHERE up_to - bytes < " TEXT_OF(FETCH_BYTES) " ORDER BY position"
#define EVENT_TYPES                                                                                                    \
    "position:int8 id:text type:text customer:text epoch:int8 sequence:int8 time:text age_ms:int8 data:text"

/* The range of transactions that may still be running. */
const struct statement outbox_horizon = {
    .name = "outbox_horizon",
    .sql = "SELECT pg_snapshot_xmin(s)::text::int8 AS oldest, pg_snapshot_xmax(s)::text::int8 AS next"
           " FROM pg_current_snapshot() s",
    .params = 0,
    .columns = "oldest:int8 next:int8",
};

const struct statement outbox_fetch = {
    .name = "outbox_fetch",
    .sql = EVENTS_WITHIN("SELECT " EVENT_COLUMNS " FROM reclaim.event_outbox WHERE published_at IS NULL"
                         " AND position > $1 AND position <> ALL ($3::int8[]) ORDER BY position LIMIT $2"),
    .params = 3,
    .columns = EVENT_TYPES,
};

/* By a list of positions, not by range: a row in between may be committed later. And of the epoch in which they were published:
 * after a restore they are published again in the next one. */
const struct statement outbox_mark = {
    .name = "outbox_mark",
    .sql = "UPDATE reclaim.event_outbox o SET published_at = clock_timestamp()"
           " FROM unnest($1::int8[], $2::int8[]) AS m (position, epoch)"
           " WHERE o.position = m.position AND o.epoch = m.epoch AND o.published_at IS NULL",
    .params = 2,
    .columns = "",
};

const struct statement outbox_note_returns = {
    .name = "outbox_note_returns",
    .sql = "INSERT INTO reclaim.event_returns (event_id, position, reason) SELECT o.id, o.position, r.reason"
           " FROM unnest($1::int8[], $2::text[]) r (position, reason)"
           " JOIN reclaim.event_outbox o ON o.position = r.position ON CONFLICT DO NOTHING",
    .params = 2,
    .columns = "",
};

const struct statement outbox_oldest = {
    .name = "outbox_oldest",
    .sql = "SELECT (extract(epoch FROM clock_timestamp() - created_at) * 1000)::int8 AS age_ms"
           " FROM reclaim.event_outbox WHERE published_at IS NULL AND position > $1 ORDER BY position LIMIT 1",
    .params = 1,
    .columns = "age_ms:int8",
};

const struct statement outbox_after = {
    .name = "outbox_after",
    .sql = EVENTS_WITHIN("SELECT " EVENT_COLUMNS " FROM reclaim.event_outbox WHERE position > $1"
                         " AND position <> ALL ($3::int8[]) ORDER BY position LIMIT $2"),
    .params = 3,
    .columns = EVENT_TYPES,
};

const struct statement outbox_newest = {
    .name = "outbox_newest",
    .sql = "SELECT coalesce(max(position), 0) AS position FROM reclaim.event_outbox",
    .params = 0,
    .columns = "position:int8",
};

const struct statement outbox_list_returned = {
    .name = "outbox_list_returned",
    .sql = "SELECT r.position, r.event_id::text AS id, o.type, o.customer_id::text AS customer,"
           " o.epoch::int8 AS epoch, o.sequence,"
           " to_char(r.returned_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') AS returned_at, r.reason"
           " FROM reclaim.event_returns r JOIN reclaim.event_outbox o ON o.id = r.event_id"
           " WHERE r.position > $1 ORDER BY r.position LIMIT $2",
    .params = 2,
    .columns = "position:int8 id:text type:text customer:text epoch:int8 sequence:int8 returned_at:text reason:text",
};

/* All returned events, or the one with this id; notifies the relay. */
const struct statement outbox_redrive = {
    .name = "outbox_redrive",
    .sql = "WITH taken AS (DELETE FROM reclaim.event_returns WHERE $1::uuid IS NULL OR event_id = $1::uuid"
           "   RETURNING event_id),"
           " again AS (UPDATE reclaim.event_outbox SET published_at = NULL WHERE id IN (SELECT event_id FROM taken)"
           "   RETURNING id)"
           " SELECT count(*) AS again, pg_notify('reclaim_events', '')::text AS told FROM again",
    .params = 1,
    .columns = "again:int8 told:text",
};

/* Reads only the oldest batch of rows, so that it is cheap if none of them is old enough. */
static const struct statement outbox_prune_batch = {
    .name = "outbox_prune_batch",
    .sql = "DELETE FROM reclaim.event_outbox WHERE position IN (SELECT position FROM (SELECT position, created_at,"
           "   published_at FROM reclaim.event_outbox ORDER BY position LIMIT $3) first"
           " WHERE created_at < clock_timestamp() - $1 * interval '1 millisecond'"
           "   AND (published_at IS NOT NULL OR NOT $2))",
    .params = 3,
    .columns = "",
};

const struct statement *const events_statements[] = {
    &outbox_horizon, &outbox_fetch,  &outbox_mark,          &outbox_note_returns, &outbox_oldest,
    &outbox_after,   &outbox_newest, &outbox_list_returned, &outbox_redrive,      &outbox_prune_batch,
};
const size_t events_statement_count = COUNT_OF(events_statements);

enum err outbox_prune(struct pg *pg, int64_t retention_ms, bool published_only, int64_t deadline_ns)
{
    for (;;) {
        struct pg_call batch = {
            .ask = &outbox_prune_batch,
            .args = {pg_i64(retention_ms), pg_text(published_only ? "true" : "false"), pg_i64(PRUNE_BATCH)},
        };
        enum err e = pg_ask(pg, &batch, deadline_ns);
        if (e || batch.rows == 0)
            return e == ERR_TIMEOUT && pg_is_up(pg) ? OK : e; /* the next run deletes the rest */
    }
}

bool outbox_has_more(const struct pg_call *rows, int64_t limit)
{
    size_t bytes = 0;
    for (int i = 0; i < rows->rows; i++)
        bytes += pg_is_null(rows, i, EVENT_DATA) ? FETCH_BYTES : pg_get(rows, i, EVENT_DATA).len;
    return rows->rows == limit || bytes >= FETCH_BYTES;
}

static void write_member(struct json_writer *w, const char *key, struct str value)
{
    json_key(w, key);
    json_str(w, value);
}

/* CloudEvents 1.0, JSON, structured mode. */
void outbox_write_event(const struct pg_call *rows, int row, struct buf *out)
{
    struct json_writer w = json_to(out);
    json_open(&w, '{');
    write_member(&w, "specversion", STR("1.0"));
    write_member(&w, "id", pg_get(rows, row, EVENT_ID));
    write_member(&w, "source", STR(SOURCE));
    write_member(&w, "type", pg_get(rows, row, EVENT_TYPE));
    write_member(&w, "subject", pg_get(rows, row, EVENT_CUSTOMER));
    write_member(&w, "time", pg_get(rows, row, EVENT_TIME));
    write_member(&w, "datacontenttype", STR("application/json"));
    json_key(&w, "epoch");
    json_i64(&w, pg_get_i64(rows, row, EVENT_EPOCH));
    json_key(&w, "sequence");
    json_i64(&w, pg_get_i64(rows, row, EVENT_SEQUENCE));
    json_key(&w, "data");
    if (pg_is_null(rows, row, EVENT_DATA))
        json_nil(&w);
    else
        json_raw(&w, pg_get(rows, row, EVENT_DATA));
    json_close(&w, '}');
}
