/* A transaction that reads top to bottom and rolls back unless committed.
 *
 *   AUTO(tx) struct tx *tx = tx_begin(pg, deadline_ns);
 *   if ((e = tx_trip(tx, reads, COUNT_OF(reads)))) return e;
 *   ... decide ...
 *   return tx_commit(tx, writes, COUNT_OF(writes));
 *
 * BEGIN travels with the first trip and COMMIT with the last. The server gets the deadline too (statement_timeout,
 * lock_timeout, idle_in_transaction_session_timeout, all local to the transaction): work and locks end together. */
#ifndef PG_TX_H
#define PG_TX_H

#include "pg/pg.h"

struct tx;

/* `tx` is part of the connection: one at a time. Nothing is sent yet. */
struct tx *tx_begin(struct pg *pg, int64_t deadline_ns);
/* Before the first trip: no statement waits longer for a lock; then the trip fails, with SQLSTATE 55P03. */
void tx_wait_for_locks(struct tx *tx, int most_ms);
/* After a trip that failed all others fail alike, without anything being sent. */
enum err tx_trip(struct tx *tx, struct pg_call *calls, size_t count) MUST_CHECK;
/* ERR_CLOSED or ERR_TIMEOUT here mean that the outcome is not known. */
enum err tx_commit(struct tx *tx, struct pg_call *calls, size_t count) MUST_CHECK;
/* Rolls back now, unless committed. The next transaction may begin. */
void tx_cleanup(struct tx **tx);

#endif
