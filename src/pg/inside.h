/* The connection's struct and functions shared by the files of this folder. Private to this folder. */
#ifndef PG_INSIDE_H
#define PG_INSIDE_H

#include <libpq-fe.h>

#include "pg/pg.h"
#include "pg/tx.h"

/* statement_timeout of the session: bounds statements outside of struct tx. */
#define STATEMENT_TIMEOUT_MS 30000

enum tx_state { TX_NEW, TX_OPEN, TX_FAILED, TX_ENDED };

struct tx {
    struct pg *pg;
    int64_t deadline_ns;
    enum tx_state state;
    enum err failure; /* the error of the trip that failed */
    int sent_ms;      /* the time-out last sent to the server; 0 before BEGIN */
    int lock_ms;      /* lock_timeout; 0: as long as the statement may take */
};

/* A prepared statement of the session. STALE: it exists, but may not match the schema any more. */
enum prepared_state { PREPARED_NOT, PREPARED_UNDERWAY, PREPARED_READY, PREPARED_STALE };

struct prepared {
    const char *name, *sql;
    enum prepared_state state;
};

#define PREPARED_SLOTS 512
#define PREPARED_MOST 384
/* A transaction adds BEGIN, its time-outs and COMMIT to the caller's calls; the pulse adds a statement of its own. */
#define TRIP_CALLS_MAX (PG_CALLS_MAX + 4)

struct pg {
    char *url;
    enum pg_prepare prepare;
    int give_up_fd;
    struct pg_pulse *reports;     /* NULL: this connection does not find out whether the server answers */
    const struct pg_pulse *heeds; /* NULL: waits until its deadlines */
    int64_t unanswered_ns;        /* since when the server has not answered; for `reports` */

    PGconn *conn; /* NULL while not connected; always in pipeline mode between calls */
    bool pooled, named;
    bool pooler_detected; /* the session lacked a statement prepared before; kept across reconnects */
    bool session_ending;  /* the server announced that it ends the session */

    struct prepared prepared[PREPARED_SLOTS]; /* by hash of the name */
    size_t prepared_count;

    PGresult *answers[TRIP_CALLS_MAX]; /* results that the calls of the last trip point to */
    size_t answer_count;

    struct tx tx;
    struct pg_fault fault;
};

/* The options of a URL, freed with pg_options_free(); one of them, NULL when it is not given. */
enum err pg_parse_url(const char *url, PQconninfoOption **ret, struct why *why) MUST_CHECK;
const char *pg_option(const PQconninfoOption *options, const char *key);
void pg_options_free(PQconninfoOption *options); /* wipes the password */

/* Sets the calls to their state before a trip: ERR_CLOSED, no rows. */
void pg_reset_calls(struct pg_call *calls, size_t count);
enum err pg_trip_of(struct pg *pg, struct pg_call *const *calls, size_t count, int64_t deadline_ns) MUST_CHECK;
/* Like PQgetResult(): the next result, or NULL at the end of a statement's results; ERR_TIMEOUT at the deadline. */
enum err pg_next_result(struct pg *pg, int64_t deadline_ns, PGresult **ret) MUST_CHECK;
/* The longest to wait before looking again; 0 when the deadline has passed. */
int pg_wait_ms(const struct pg *pg, int64_t deadline_ns);
/* After such a wait without any event: whether to stop waiting, because the server is silent. */
bool pg_is_given_up(struct pg *pg);
/* Something was sent, or the server has answered. */
void pg_pulse_asked(struct pg *pg);
void pg_pulse_answered(struct pg *pg);
/* Maps a failed result to an error code; copies its SQLSTATE, "" when the server did not send one. */
enum err pg_error_of(const PGresult *result, char sqlstate[6]) MUST_CHECK;
/* Rolls back an open transaction; disconnects when that fails. */
void pg_end_transaction(struct pg *pg);

#endif
