/* One connection to PostgreSQL, used by one thread, and the round trips made over it.
 *
 * A trip sends several statements at once and waits for all their answers (libpq's pipeline), up to a deadline.
 * Outside a transaction the statements of a trip are one implicit transaction; see pg/tx.h for longer ones.
 * A connection that missed a deadline or lost its server is closed at once: nothing late can be taken for an answer. */
#ifndef PG_PG_H
#define PG_PG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* Every statement of the program is such a constant, named after what it does, so that all can be checked at start. */
struct statement {
    const char *name; /* "probe_find_user"; also the prepared statement's */
    const char *sql;  /* schema-qualified, $1… for what varies */
    int params;
    const char *columns; /* "id:uuid email:text count:int8", or "" when no rows come back */
};

enum pg_prepare { PG_PREPARE_AUTO, PG_PREPARE_ON, PG_PREPARE_OFF };

struct pg_arg {
    const char *text; /* NULL with number[0] == 0 is SQL's null */
    char number[22];
};

struct pg_arg pg_text(const char *z);         /* the bytes must live until the trip is over */
struct pg_arg pg_text_or_null(const char *z); /* NULL is null */
struct pg_arg pg_i64(int64_t n);
struct pg_arg pg_null(void);

#define PG_ARGS_MAX 16
#define PG_CALLS_MAX 16

struct pg_call {
    const struct statement *ask;
    struct pg_arg args[PG_ARGS_MAX];
    /* Filled by the trip: */
    /* OK; ERR_DATABASE; ERR_CONFLICT for a deadlock, a serialisation failure, or a prepared statement that the server
     * lost or that fits the schema no more; ERR_CLOSED when it was not reached. */
    enum err err;
    char sqlstate[6];
    int rows;         /* returned, or affected where none are returned */
    const void *data; /* the answer itself; lives until the next trip over this connection */
};

struct pg;

struct pg *pg_new(const char *url, enum pg_prepare prepare) MUST_CHECK; /* connects nothing yet */
/* Says whether a URL makes sense, without connecting; ERR_INPUT. */
enum err pg_check_url(const char *url, struct why *why) MUST_CHECK;
void pg_free(struct pg *pg);
void pg_cleanup(struct pg **pg);

/* Blocks, name look-ups included. ERR_CLOSED when no server answered or will yet, ERR_DATABASE when one refused,
 * ERR_INPUT for a URL that makes no sense. With several hosts in the URL only one that takes writes will do. `why`
 * never holds the password. */
enum err pg_connect(struct pg *pg, int64_t deadline_ns, struct why *why) MUST_CHECK;
/* pg_connect gives up with ERR_CLOSED as soon as this descriptor is readable; -1, the default, for none. */
void pg_give_up_when(struct pg *pg, int fd);
void pg_disconnect(struct pg *pg);
bool pg_is_up(const struct pg *pg);
/* Looks, without waiting, whether an idle connection still has its server; disconnects when not. */
bool pg_is_alive(struct pg *pg);
bool pg_is_pooled(const struct pg *pg); /* a transaction pooler stands between: no session state may be kept */
int pg_socket(const struct pg *pg);
/* For who only wants to be woken by notifications: drops those that came. */
void pg_forget_notifications(struct pg *pg);

/* The first failure among the calls, or what ended the trip. Calls before the one that failed keep their answers, those
 * behind it are not reached. ERR_TIMEOUT and ERR_CLOSED leave the connection closed, unless the deadline had passed
 * before anything was sent. A statement outside a transaction of ours is cancelled by the server after 30 seconds. */
enum err pg_trip(struct pg *pg, struct pg_call *calls, size_t count, int64_t deadline_ns) MUST_CHECK;
/* A trip of one. */
enum err pg_ask(struct pg *pg, struct pg_call *call, int64_t deadline_ns) MUST_CHECK;
/* Several statements in one text, without parameters or answers: migrations and fixtures. `why` gets PostgreSQL's words.
 * A script that fails leaves no transaction open that it began. */
enum err pg_script(struct pg *pg, const char *sql, int64_t deadline_ns, struct why *why) MUST_CHECK;

bool pg_is_null(const struct pg_call *call, int row, int column);
struct str pg_get(const struct pg_call *call, int row, int column);  /* absent for null; .at is a C string */
int64_t pg_get_i64(const struct pg_call *call, int row, int column); /* 0 for null */
bool pg_get_bool(const struct pg_call *call, int row, int column);

/* Has the server describe each statement and compares parameters and columns with what we declare. `why` names the
 * first one that differs. */
enum err pg_check_statements(struct pg *pg, const struct statement *const *all, size_t count,
                             struct why *why) MUST_CHECK;

#endif
