/* One connection to PostgreSQL, used by one thread, and its round trips.
 *
 * A trip sends several statements at once and waits for all results (libpq's pipeline mode), up to a deadline.
 * Outside a transaction the statements of a trip are one implicit transaction; see pg/tx.h for longer ones.
 * A connection that missed a deadline or lost its server is closed, so that a late result cannot be mistaken for
 * another statement's. */
#ifndef PG_PG_H
#define PG_PG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* Every statement of the program is a constant of this type, so that all of them can be checked at start. */
struct statement {
    const char *name; /* "probe_find_user"; also the name of the prepared statement */
    const char *sql;  /* schema-qualified, with $1… as parameters */
    int params;
    const char *columns; /* "id:uuid email:text count:int8", or "" when it returns no rows */
};

enum pg_prepare { PG_PREPARE_AUTO, PG_PREPARE_ON, PG_PREPARE_OFF };

struct pg_arg {
    const char *text; /* NULL with number[0] == 0 is SQL's null */
    char number[22];
};

struct pg_arg pg_text(const char *z);         /* the bytes must stay valid until the trip ends */
struct pg_arg pg_text_or_null(const char *z); /* NULL is null */
struct pg_arg pg_i64(int64_t n);
struct pg_arg pg_null(void);

#define PG_ARGS_MAX 16
#define PG_CALLS_MAX 40

struct pg_call {
    const struct statement *ask;
    struct pg_arg args[PG_ARGS_MAX];
    /* The members below are set by the trip. */
    /* OK; ERR_DATABASE; ERR_CONFLICT for a deadlock, a serialisation failure, or a prepared statement that is missing
     * in the session or does not match the schema any more; ERR_CLOSED when it was not run. */
    enum err err;
    char sqlstate[6];
    char constraint[64]; /* the one that a statement violated, else "" */
    int rows;            /* returned, or affected where none are returned */
    const void *data;    /* the result; valid until the next trip on this connection */
};

struct pg;

/* Whether the server answers at all. One connection, which asks every few milliseconds, finds out; the others stop waiting
 * when it does not. A statement that only takes long, or waits for a lock, is no silence. */
struct pg_pulse {
    _Atomic bool silent;
};

struct pg *pg_new(const char *url, enum pg_prepare prepare) MUST_CHECK; /* does not connect yet */
/* ERR_INPUT when the URL is not valid; does not connect. */
enum err pg_check_url(const char *url, struct why *why) MUST_CHECK;
void pg_free(struct pg *pg);
void pg_cleanup(struct pg **pg);

/* Blocks, also for name look-ups. ERR_CLOSED when no server answered or it is starting or stopping, ERR_DATABASE when
 * one refused, ERR_INPUT for an invalid URL. With several hosts in the URL, connects only to one that accepts writes.
 * `why` never contains the password. */
enum err pg_connect(struct pg *pg, int64_t deadline_ns, struct why *why) MUST_CHECK;
/* pg_connect() returns ERR_CLOSED as soon as this descriptor is readable; -1, the default, for none. */
void pg_give_up_when(struct pg *pg, int fd);
/* Makes this connection find out: each of its trips begins with a statement that is answered before the others are run. */
void pg_report_pulse(struct pg *pg, struct pg_pulse *pulse);
/* Trips return ERR_TIMEOUT, and pg_connect() ERR_CLOSED, while the server is silent. */
void pg_heed_pulse(struct pg *pg, const struct pg_pulse *pulse);
void pg_disconnect(struct pg *pg);
bool pg_is_up(const struct pg *pg);
/* Checks without waiting whether an idle connection is still open; disconnects when not. */
bool pg_is_alive(struct pg *pg);
bool pg_is_pooled(const struct pg *pg); /* connected through a transaction pooler: no session state may be kept */
/* For what belongs to a session (leadership, LISTEN, migrations): ERR_INPUT, with the setting to use, when it is pooled. */
enum err pg_require_direct(const struct pg *pg, struct why *why) MUST_CHECK;
int pg_socket(const struct pg *pg);
/* Drops the notifications received, for callers that use them only to wake up. */
void pg_forget_notifications(struct pg *pg);

/* The last statement that the server refused on this connection, for log lines behind calls that are out of scope: SQLSTATE,
 * constraint and column, "" without. PostgreSQL's sentences are left out: they may quote values. */
struct pg_fault {
    char sqlstate[6], constraint[64], column[64];
};
const struct pg_fault *pg_fault(const struct pg *pg);
void pg_forget_fault(struct pg *pg);

/* Returns the first failure among the calls, or the error that ended the trip. Calls before the failed one keep their
 * results, those after it are not run. ERR_TIMEOUT and ERR_CLOSED leave the connection closed, unless the deadline had
 * passed before anything was sent. Outside of struct tx, the server cancels a statement after 30 seconds. */
enum err pg_trip(struct pg *pg, struct pg_call *calls, size_t count, int64_t deadline_ns) MUST_CHECK;
/* A trip with one call. */
enum err pg_ask(struct pg *pg, struct pg_call *call, int64_t deadline_ns) MUST_CHECK;
/* Runs several statements in one text, without parameters or results: migrations and fixtures. `why` gets PostgreSQL's
 * message. A transaction that a failed script began is rolled back. */
enum err pg_script(struct pg *pg, const char *sql, int64_t deadline_ns, struct why *why) MUST_CHECK;

bool pg_is_null(const struct pg_call *call, int row, int column);
struct str pg_get(const struct pg_call *call, int row, int column);  /* absent for null; .at is a C string */
int64_t pg_get_i64(const struct pg_call *call, int row, int column); /* 0 for null */
bool pg_get_bool(const struct pg_call *call, int row, int column);

/* Has the server describe each statement and compares its parameters and columns with the declared ones. `why` names
 * the first one that differs. */
enum err pg_check_statements(struct pg *pg, const struct statement *const *all, size_t count,
                             struct why *why) MUST_CHECK;

#endif
