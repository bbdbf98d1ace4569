/* A transaction that rolls back at the end of its scope unless committed.
 *
 *   AUTO(tx) struct tx *tx = tx_begin(pg, deadline_ns);
 *   if ((e = tx_trip(tx, reads, COUNT_OF(reads)))) return e;
 *   ... decide ...
 *   return tx_commit(tx, writes, COUNT_OF(writes));
 *
 * BEGIN is sent with the first trip and COMMIT with the last. The server gets the deadline too (statement_timeout,
 * lock_timeout, idle_in_transaction_session_timeout, all local to the transaction) and releases all locks by then. */
#ifndef PG_TX_H
#define PG_TX_H

#include "pg/pg.h"

struct tx;

/* The transaction is part of `pg`: one at a time. Nothing is sent yet. */
struct tx *tx_begin(struct pg *pg, int64_t deadline_ns);
/* Sets lock_timeout, before the first trip. A statement that waits longer for a lock fails with SQLSTATE 55P03. */
void tx_wait_for_locks(struct tx *tx, int most_ms);
/* ERR_TIMEOUT also when the server cancelled a statement with the deadline near; the connection then stays open.
 * After a failed trip, further ones return the same error without sending anything. */
enum err tx_trip(struct tx *tx, struct pg_call *calls, size_t count) MUST_CHECK;
/* After ERR_CLOSED or ERR_TIMEOUT it is unknown whether the transaction was committed. */
enum err tx_commit(struct tx *tx, struct pg_call *calls, size_t count) MUST_CHECK;
/* Rolls back now, unless committed. The next transaction may begin. */
void tx_cleanup(struct tx **tx);

#endif
