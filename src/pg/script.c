/* Scripts of several statements, in the simple query protocol: for migrations and fixtures. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "pg/inside.h"

#define ROLLBACK_NS NS_PER_S

static enum err describe_failure(const PGresult *result, const char *sql, const char *state, enum err e,
                                 struct why *why)
{
    const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    const char *position = PQresultErrorField(result, PG_DIAG_STATEMENT_POSITION);
    if (!message)
        return why_set(why, e, "the connection to the database was lost");
    if (!position)
        return why_set(why, e, "%s (SQLSTATE %s)", message, state);
    /* The position counts characters: continuation bytes of UTF-8 are not counted. */
    long left = strtol(position, NULL, 10);
    int line = 1;
    for (; *sql && left > 1; sql++) {
        line += *sql == '\n';
        left -= ((unsigned char)sql[1] & 0xC0) != 0x80;
    }
    return why_set(why, e, "%s (SQLSTATE %s, line %d)", message, state, line);
}

static enum err note_failure(struct pg *pg, const PGresult *result, const char *sql, struct why *why)
{
    char state[6];
    enum err e = pg_error_of(result, state);
    pg_forget_fault(pg);
    memcpy(pg->fault.sqlstate, state, sizeof state);
    return describe_failure(result, sql, state, e, why);
}

/* Reads the results of all statements; returns the first failure. */
static enum err read_script(struct pg *pg, const char *sql, int64_t deadline_ns, struct why *why)
{
    enum err first = OK;
    for (;;) {
        PGresult *result = NULL;
        enum err e = pg_next_result(pg, deadline_ns, &result);
        if (e)
            return why_set(why, e, "the database did not finish in time");
        if (!result)
            return first;
        ExecStatusType status = PQresultStatus(result);
        if (status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH)
            e = why_set(why, ERR_CLOSED, "a script cannot COPY to or from its client");
        else if (status == PGRES_FATAL_ERROR || status == PGRES_BAD_RESPONSE)
            e = note_failure(pg, result, sql, why);
        PQclear(result);
        first = first ? first : e;
        if (e == ERR_CLOSED)
            return e;
    }
}

static enum err run_script(struct pg *pg, const char *sql, int64_t deadline_ns, struct why *why)
{
    enum err e = OK;
    if (!PQexitPipelineMode(pg->conn) || !PQsendQuery(pg->conn, sql))
        e = why_set(why, ERR_CLOSED, "the connection to the database was lost");
    if (!e)
        e = read_script(pg, sql, deadline_ns, why);
    if (e == ERR_CLOSED || e == ERR_TIMEOUT || pg->session_ending || !PQenterPipelineMode(pg->conn))
        pg_disconnect(pg);
    return e;
}

static enum err set_statement_timeout(struct pg *pg, int ms, int64_t deadline_ns, struct why *why)
{
    char sql[64];
    snprintf(sql, sizeof sql, "SET statement_timeout = %d", ms);
    return run_script(pg, sql, deadline_ns, why);
}

enum err pg_script(struct pg *pg, const char *sql, int64_t deadline_ns, struct why *why)
{
    if (!pg->conn)
        return why_set(why, ERR_CLOSED, "there is no connection to the database");
    int ms = clock_ms_until(deadline_ns, 24 * 3600 * 1000);
    if (ms == 0)
        return why_set(why, ERR_TIMEOUT, "the deadline of the script passed before it began");

    /* A migration may take longer than the session's statement_timeout. */
    bool longer = !pg->pooled && ms > STATEMENT_TIMEOUT_MS;
    enum err e = longer ? set_statement_timeout(pg, ms, deadline_ns, why) : OK;
    if (e)
        return e;
    bool inside = PQtransactionStatus(pg->conn) != PQTRANS_IDLE;
    e = run_script(pg, sql, deadline_ns, why);
    if (e && !inside)
        pg_end_transaction(pg);
    if (longer && pg->conn && PQtransactionStatus(pg->conn) != PQTRANS_INERROR) {
        enum err after = set_statement_timeout(pg, STATEMENT_TIMEOUT_MS, clock_ns() + ROLLBACK_NS, e ? NULL : why);
        e = e ? e : after;
    }
    return e;
}

void pg_end_transaction(struct pg *pg)
{
    if (!pg->conn || PQtransactionStatus(pg->conn) == PQTRANS_IDLE)
        return;
    if (run_script(pg, "ROLLBACK", clock_ns() + ROLLBACK_NS, NULL) ||
        (pg->conn && PQtransactionStatus(pg->conn) != PQTRANS_IDLE))
        pg_disconnect(pg);
}
