/* The outbox: pruning, reading events, and events returned as unroutable. */
#ifndef EVENTS_OUTBOX_H
#define EVENTS_OUTBOX_H

#include "pg/pg.h"

extern const struct statement *const events_statements[];
extern const size_t events_statement_count;

/* Deletes rows older than this, oldest first, in batches, until none is left or the deadline passes; with
 * `published_only` unpublished rows are kept. For the leader. */
enum err outbox_prune(struct pg *pg, int64_t retention_ms, bool published_only, int64_t deadline_ns) MUST_CHECK;

#define EVENT_BYTES_MAX ((size_t)16 * 1024 * 1024)
#define EVENT_TOO_LARGE "larger than 16 MB"
/* Rows of outbox_after or outbox_fetch: true if others may follow. A page ends after so many rows, or after some MB. */
bool outbox_has_more(const struct pg_call *rows, int64_t limit);
/* Writes the CloudEvent of one row of them, at most EVENT_BYTES_MAX. Data that is too large for an event is null. */
struct buf;
void outbox_write_event(const struct pg_call *rows, int row, struct buf *out);

/* Columns of these statements. An event is newer than another of its customer if (epoch, sequence) is greater. */
enum {
    EVENT_POSITION,
    EVENT_ID,
    EVENT_TYPE,
    EVENT_CUSTOMER,
    EVENT_EPOCH,
    EVENT_SEQUENCE,
    EVENT_TIME,
    EVENT_AGE_MS,
    EVENT_DATA
};

extern const struct statement outbox_horizon, outbox_fetch, outbox_mark, outbox_note_returns, outbox_oldest,
    outbox_after, outbox_newest, outbox_list_returned, outbox_redrive;

#endif
