/* The outbox as others need it: kept from growing, followed, and its dead letters. */
#ifndef EVENTS_OUTBOX_H
#define EVENTS_OUTBOX_H

#include "pg/pg.h"

extern const struct statement *const events_statements[];
extern const size_t events_statement_count;

/* Rows older than this, oldest first, in batches, until none is left or the time is up; with `published_only` those that
 * RabbitMQ still has to get stay. For the leader. */
enum err outbox_prune(struct pg *pg, int64_t retention_ms, bool published_only, int64_t deadline_ns) MUST_CHECK;

/* The CloudEvent of one row that outbox_after or outbox_fetch gave. */
struct buf;
void outbox_write_event(const struct pg_call *rows, int row, struct buf *out);

/* Columns of the statements that give events. */
enum { EVENT_POSITION, EVENT_ID, EVENT_TYPE, EVENT_CUSTOMER, EVENT_SEQUENCE, EVENT_TIME, EVENT_AGE_MS, EVENT_DATA };

extern const struct statement outbox_horizon, outbox_fetch, outbox_mark, outbox_note_returns, outbox_oldest,
    outbox_after, outbox_newest, outbox_list_returned, outbox_redrive;

#endif
