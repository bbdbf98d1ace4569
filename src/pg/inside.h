/* What the files of this folder know of a connection. Private to this folder. */
#ifndef PG_INSIDE_H
#define PG_INSIDE_H

#include <libpq-fe.h>

#include "pg/pg.h"
#include "pg/tx.h"

/* The safety net for statements outside a transaction of ours. */
#define STATEMENT_TIMEOUT_MS 30000

enum tx_state { TX_NEW, TX_OPEN, TX_FAILED, TX_ENDED };

struct tx {
    struct pg *pg;
    int64_t deadline_ns;
    enum tx_state state;
    enum err failure; /* of the trip that failed */
    int told_ms;      /* the time-out the server has; 0 before BEGIN */
    int lock_ms;      /* the most a statement waits for a lock; 0: as long as it may last */
};

/* A named statement as the server's session has it. STALE: it is there, but may not fit the schema any more. */
enum prepared_state { PREPARED_NOT, PREPARED_UNDERWAY, PREPARED_READY, PREPARED_STALE };

struct prepared {
    const char *name, *sql;
    enum prepared_state state;
};

#define PREPARED_SLOTS 512
#define PREPARED_MOST 384
/* A transaction adds BEGIN, its limits and COMMIT to the caller's calls. */
#define TRIP_CALLS_MAX (PG_CALLS_MAX + 3)

struct pg {
    char *url;
    enum pg_prepare prepare;
    int give_up_fd;

    PGconn *conn; /* NULL while not connected; always in pipeline mode between calls */
    bool pooled, named;
    bool caught_pooler; /* the server forgot a statement of ours: remembered over reconnects */
    bool doomed;        /* the server announced the session's end */

    struct prepared prepared[PREPARED_SLOTS]; /* by hash of the name */
    size_t prepared_count;

    PGresult *answers[TRIP_CALLS_MAX]; /* what the calls of the last trip point to */
    size_t answer_count;

    struct tx tx;
};

/* As calls are before anything answers them. */
void pg_unanswered(struct pg_call *calls, size_t count);
enum err pg_trip_of(struct pg *pg, struct pg_call *const *calls, size_t count, int64_t deadline_ns) MUST_CHECK;
/* The next result in order, or NULL between results, as PQgetResult() has it; ERR_TIMEOUT when it did not come. */
enum err pg_next_result(struct pg *pg, int64_t deadline_ns, PGresult **ret) MUST_CHECK;
/* What a failed result means; copies its SQLSTATE, "" when the failure is not the server's. */
enum err pg_judge(const PGresult *result, char sqlstate[6]) MUST_CHECK;
/* Leaves no transaction open, whatever it takes: rolls back or disconnects. */
void pg_settle(struct pg *pg);

#endif
