/* Round trips: sends the calls, waits for the results up to the deadline and assigns each result to its call. */
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/digest.h"
#include "pg/inside.h"
#include "pg/prepared.h"

struct pg *pg_new(const char *url, enum pg_prepare prepare)
{
    struct pg *pg = calloc(1, sizeof *pg);
    if (!pg)
        return NULL;
    pg->url = strdup(url);
    pg->prepare = prepare;
    pg->give_up_fd = -1;
    pg->tx.state = TX_ENDED;
    if (!pg->url) {
        free(pg);
        return NULL;
    }
    return pg;
}

static void clear_answers(struct pg *pg)
{
    for (size_t i = 0; i < pg->answer_count; i++)
        PQclear(pg->answers[i]);
    pg->answer_count = 0;
}

void pg_free(struct pg *pg)
{
    if (!pg)
        return;
    pg_disconnect(pg);
    clear_answers(pg);
    secret_wipe(pg->url, strlen(pg->url));
    free(pg->url);
    free(pg);
}

void pg_cleanup(struct pg **pg)
{
    pg_free(*pg);
}

void pg_give_up_when(struct pg *pg, int fd)
{
    pg->give_up_fd = fd;
}

void pg_report_pulse(struct pg *pg, struct pg_pulse *pulse)
{
    pg->reports = pulse;
}

void pg_heed_pulse(struct pg *pg, const struct pg_pulse *pulse)
{
    pg->heeds = pulse;
}

bool pg_is_up(const struct pg *pg)
{
    return pg->conn != NULL;
}

bool pg_is_pooled(const struct pg *pg)
{
    return pg->pooled;
}

enum err pg_require_direct(const struct pg *pg, struct why *why)
{
    if (!pg->pooled)
        return OK;
    return why_set(why, ERR_INPUT,
                   "the connection goes through a pooler, where leadership, LISTEN and migrations cannot work: set "
                   "RECLAIM_DATABASE_DIRECT_URL to the PostgreSQL server itself");
}

int pg_socket(const struct pg *pg)
{
    return pg->conn ? PQsocket(pg->conn) : -1;
}

void pg_forget_notifications(struct pg *pg)
{
    for (PGnotify *n; pg->conn && (n = PQnotifies(pg->conn));)
        PQfreemem(n);
}

struct pg_arg pg_text(const char *z)
{
    return (struct pg_arg){.text = z};
}

struct pg_arg pg_text_or_null(const char *z)
{
    return z ? pg_text(z) : pg_null();
}

struct pg_arg pg_i64(int64_t n)
{
    struct pg_arg arg = {.text = NULL};
    snprintf(arg.number, sizeof arg.number, "%" PRId64, n);
    return arg;
}

struct pg_arg pg_null(void)
{
    return (struct pg_arg){.text = NULL};
}

/* How long the server may leave a quick question unanswered, and how often those who wait look. */
#define SILENT_NS (600 * NS_PER_MS)
#define LOOK_MS 50

void pg_pulse_asked(struct pg *pg)
{
    if (pg->reports && !pg->unanswered_ns)
        pg->unanswered_ns = clock_ns();
}

void pg_pulse_answered(struct pg *pg)
{
    pg->unanswered_ns = 0;
    if (pg->reports)
        atomic_store(&pg->reports->silent, false);
}

/* Those who heed the pulse look at it every LOOK_MS, and so does the one who reports it. */
int pg_wait_ms(const struct pg *pg, int64_t deadline_ns)
{
    return clock_ms_until(deadline_ns, pg->reports || pg->heeds ? LOOK_MS : 1000);
}

bool pg_is_given_up(struct pg *pg)
{
    if (pg->reports && pg->unanswered_ns && clock_ns() - pg->unanswered_ns >= SILENT_NS)
        atomic_store(&pg->reports->silent, true);
    return pg->heeds && atomic_load(&pg->heeds->silent);
}

enum err pg_next_result(struct pg *pg, int64_t deadline_ns, PGresult **ret)
{
    for (;;) {
        /* When sending fails, the server's last message may still be readable: only reading decides. */
        bool unsent = PQflush(pg->conn) == 1;
        if (!PQisBusy(pg->conn)) {
            *ret = PQgetResult(pg->conn);
            return OK;
        }
        int ms = pg_wait_ms(pg, deadline_ns);
        if (ms == 0)
            return ERR_TIMEOUT;
        struct pollfd on = {.fd = PQsocket(pg->conn), .events = (short)(POLLIN | (unsent ? POLLOUT : 0))};
        int ready = poll(&on, 1, ms);
        if (ready > 0 && on.revents & ~POLLOUT) {
            (void)!PQconsumeInput(pg->conn); /* the next result reports a failure */
            pg_pulse_answered(pg);
        } else if (ready == 0 && pg_is_given_up(pg)) {
            return ERR_TIMEOUT;
        }
    }
}

static bool is_one_of(const char *state, const char *const *list)
{
    for (; *list; list++)
        if (!strncmp(state, *list, strlen(*list)))
            return true;
    return false;
}

enum err pg_error_of(const PGresult *result, char sqlstate[6])
{
    /* Read-only after a fail-over, shutting down, starting up, connection failures. */
    static const char *const closing[] = {"25006", "57P01", "57P02", "57P03", "08", NULL};
    static const char *const again[] = {"40001", "40P01", NULL};
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    sqlstate[0] = '\0';
    if (!state)
        return ERR_CLOSED;
    snprintf(sqlstate, 6, "%s", state);
    if (severity && (!strcmp(severity, "FATAL") || !strcmp(severity, "PANIC")))
        return ERR_CLOSED;
    if (is_one_of(state, closing))
        return ERR_CLOSED;
    return is_one_of(state, again) ? ERR_CONFLICT : ERR_DATABASE;
}

const struct pg_fault *pg_fault(const struct pg *pg)
{
    return &pg->fault;
}

void pg_forget_fault(struct pg *pg)
{
    pg->fault = (struct pg_fault){"", "", ""};
}

static enum err fail_call(struct pg *pg, struct pg_call *call, const PGresult *result)
{
    const char *constraint = PQresultErrorField(result, PG_DIAG_CONSTRAINT_NAME);
    const char *column = PQresultErrorField(result, PG_DIAG_COLUMN_NAME);
    call->err = pg_error_of(result, call->sqlstate);
    snprintf(call->constraint, sizeof call->constraint, "%s", constraint ? constraint : "");
    memcpy(pg->fault.sqlstate, call->sqlstate, sizeof call->sqlstate);
    memcpy(pg->fault.constraint, call->constraint, sizeof call->constraint);
    snprintf(pg->fault.column, sizeof pg->fault.column, "%s", column ? column : "");
    return call->err;
}

/* One message sent in the pipeline. Results arrive in the same order, one for each. */
struct pipeline_step {
    enum { PIPELINE_DEALLOCATE, PIPELINE_PREPARE, PIPELINE_RUN } kind;
    struct pg_call *call;
    struct prepared *prepared; /* NULL for an unnamed statement */
    bool reused;               /* runs a statement prepared in an earlier trip */
};

struct trip {
    struct pg *pg;
    int64_t deadline_ns;
    struct pg_call tick; /* answered before the others are run, where the pulse is reported */
    size_t count;
    struct pipeline_step steps[3 * TRIP_CALLS_MAX];
};

static const struct statement tick = {.name = "tick", .sql = "SELECT 1 AS tick", .params = 0, .columns = "tick:int4"};

static void add_step(struct trip *t, struct pipeline_step step)
{
    t->steps[t->count++] = step;
}

static bool send_deallocate(struct trip *t, struct pg_call *call, struct prepared *p)
{
    char sql[PREPARED_NAME_MAX + 16];
    snprintf(sql, sizeof sql, "DEALLOCATE \"%s\"", p->name);
    add_step(t, (struct pipeline_step){.kind = PIPELINE_DEALLOCATE, .call = call, .prepared = p});
    return PQsendQueryParams(t->pg->conn, sql, 0, NULL, NULL, NULL, NULL, 0);
}

static bool send_prepare(struct trip *t, struct pg_call *call, struct prepared *p)
{
    p->state = PREPARED_UNDERWAY;
    add_step(t, (struct pipeline_step){.kind = PIPELINE_PREPARE, .call = call, .prepared = p});
    return PQsendPrepare(t->pg->conn, p->name, p->sql, 0, NULL);
}

static bool send_call(struct trip *t, struct pg_call *call)
{
    const struct statement *ask = call->ask;
    const char *values[PG_ARGS_MAX];
    for (int i = 0; i < ask->params; i++)
        values[i] = call->args[i].text ? call->args[i].text : call->args[i].number[0] ? call->args[i].number : NULL;

    PGconn *conn = t->pg->conn;
    struct prepared *p = t->pg->named ? prepared_find(t->pg, ask) : NULL;
    if (!p) {
        add_step(t, (struct pipeline_step){.kind = PIPELINE_RUN, .call = call});
        return PQsendQueryParams(conn, ask->sql, ask->params, NULL, values, NULL, NULL, 0);
    }
    bool reused = p->state == PREPARED_READY;
    if (p->state == PREPARED_STALE && !send_deallocate(t, call, p))
        return false;
    if ((p->state == PREPARED_NOT || p->state == PREPARED_STALE) && !send_prepare(t, call, p))
        return false;
    add_step(t, (struct pipeline_step){.kind = PIPELINE_RUN, .call = call, .prepared = p, .reused = reused});
    return PQsendQueryPrepared(conn, p->name, ask->params, values, NULL, NULL, 0);
}

static void keep_answer(struct pg *pg, struct pg_call *call, PGresult *result)
{
    pg->answers[pg->answer_count++] = result;
    call->err = OK;
    call->data = result;
    int64_t affected = 0;
    if (PQresultStatus(result) == PGRES_TUPLES_OK)
        call->rows = PQntuples(result);
    else if (!str_to_i64(str_of(PQcmdTuples(result)), 0, INT_MAX, &affected))
        call->rows = (int)affected;
}

static bool lost_by_pooler(const struct pipeline_step *step, const char *state)
{
    return (step->kind == PIPELINE_RUN && step->prepared && !strcmp(state, "26000")) ||
           (step->kind == PIPELINE_PREPARE && !strcmp(state, "42P05"));
}

/* Updates the state of prepared statements; true when a retry with the statement prepared again, or unnamed, may
 * succeed. */
static bool may_succeed_prepared_again(struct pg *pg, const struct pipeline_step *step, const char *state)
{
    if (lost_by_pooler(step, state) && pg->prepare == PG_PREPARE_AUTO) {
        pg->pooler_detected = pg->pooled = true;
        pg->named = false;
        return true;
    }
    if (step->kind == PIPELINE_RUN && step->reused && !strcmp(state, "26000")) {
        step->prepared->state = PREPARED_NOT;
        return true;
    }
    /* 0A000 is "cached plan must not change result type"; parameter types are fixed by the preparation as well. */
    bool result_changed = !strcmp(state, "0A000");
    if (step->kind == PIPELINE_RUN && step->reused && (result_changed || !strncmp(state, "42", 2))) {
        step->prepared->state = PREPARED_STALE;
        return result_changed;
    }
    return false;
}

static void update_prepared(const struct pipeline_step *step, bool done, const char *state)
{
    struct prepared *p = step->prepared;
    if (step->kind == PIPELINE_DEALLOCATE)
        p->state = done || !strcmp(state, "26000") ? PREPARED_NOT : PREPARED_STALE;
    else if (step->kind == PIPELINE_PREPARE && done)
        p->state = PREPARED_READY;
    else if (step->kind == PIPELINE_PREPARE && p->state == PREPARED_UNDERWAY)
        p->state = PREPARED_NOT;
}

/* Takes ownership of the result. An error ends the trip: the connection cannot be used any more. */
static enum err take_answer(struct pg *pg, const struct pipeline_step *step, PGresult *result)
{
    enum err e = OK;
    char state[6] = "";
    ExecStatusType status = PQresultStatus(result);
    bool done = status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK || status == PGRES_EMPTY_QUERY;
    if (status == PGRES_FATAL_ERROR) {
        e = fail_call(pg, step->call, result);
        memcpy(state, step->call->sqlstate, sizeof state);
        if (e != ERR_CLOSED && may_succeed_prepared_again(pg, step, state))
            step->call->err = ERR_CONFLICT;
    } else if (!done && status != PGRES_PIPELINE_ABORTED) {
        e = ERR_CLOSED; /* COPY or no result: the protocol state is unknown */
    }
    update_prepared(step, done, state);
    if (done && step->kind == PIPELINE_RUN)
        keep_answer(pg, step->call, result);
    else
        PQclear(result);
    return e == ERR_CLOSED ? e : OK;
}

/* A failure at the end of the transaction, such as a deferred constraint, is reported as the last call's. */
static enum err read_sync(struct trip *t, struct pg_call *last)
{
    for (int i = 0; i < 4; i++) {
        PGresult *result = NULL;
        enum err e = pg_next_result(t->pg, t->deadline_ns, &result);
        if (e)
            return e;
        ExecStatusType status = result ? PQresultStatus(result) : PGRES_EMPTY_QUERY;
        if (status == PGRES_FATAL_ERROR)
            e = fail_call(t->pg, last, result);
        PQclear(result);
        if (status == PGRES_PIPELINE_SYNC)
            return OK;
        if (e == ERR_CLOSED)
            return e;
    }
    return ERR_CLOSED;
}

static enum err read_answers(struct trip *t, struct pg_call *last)
{
    for (size_t i = 0; i < t->count; i++) {
        PGresult *result = NULL, *end = NULL;
        enum err e = pg_next_result(t->pg, t->deadline_ns, &result);
        if (!e)
            e = take_answer(t->pg, &t->steps[i], result);
        if (!e)
            e = pg_next_result(t->pg, t->deadline_ns, &end);
        if (e)
            return e;
        if (end) {
            PQclear(end);
            return ERR_CLOSED;
        }
    }
    return read_sync(t, last);
}

static bool send_tick(struct trip *t)
{
    t->tick = (struct pg_call){.ask = &tick};
    pg_pulse_asked(t->pg);
    return send_call(t, &t->tick) && PQsendFlushRequest(t->pg->conn);
}

static bool send_all(struct trip *t, struct pg_call *const *calls, size_t count)
{
    if (t->pg->reports && !send_tick(t))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!send_call(t, calls[i]))
            return false;
    return PQpipelineSync(t->pg->conn);
}

void pg_reset_calls(struct pg_call *calls, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        calls[i].err = ERR_CLOSED;
        calls[i].sqlstate[0] = calls[i].constraint[0] = '\0';
        calls[i].rows = 0;
        calls[i].data = NULL;
    }
}

enum err pg_trip_of(struct pg *pg, struct pg_call *const *calls, size_t count, int64_t deadline_ns)
{
    clear_answers(pg);
    bool fits = count <= TRIP_CALLS_MAX;
    for (size_t i = 0; i < count; i++) {
        pg_reset_calls(calls[i], 1);
        fits = fits && calls[i]->ask->params >= 0 && calls[i]->ask->params <= PG_ARGS_MAX;
    }
    if (!fits)
        return ERR_INPUT;
    if (!pg->conn)
        return ERR_CLOSED;
    if (count == 0)
        return OK;
    if (clock_ns() >= deadline_ns)
        return ERR_TIMEOUT;

    struct trip t = {.pg = pg, .deadline_ns = deadline_ns};
    enum err e = send_all(&t, calls, count) ? read_answers(&t, calls[count - 1]) : ERR_CLOSED;
    if (e || pg->session_ending)
        pg_disconnect(pg);
    if (e)
        return e;
    for (size_t i = 0; i < count; i++)
        if (calls[i]->err)
            return calls[i]->err;
    return OK;
}

enum err pg_trip(struct pg *pg, struct pg_call *calls, size_t count, int64_t deadline_ns)
{
    struct pg_call *pointers[PG_CALLS_MAX];
    if (count > PG_CALLS_MAX) {
        pg_reset_calls(calls, count);
        return ERR_INPUT;
    }
    for (size_t i = 0; i < count; i++)
        pointers[i] = &calls[i];
    return pg_trip_of(pg, pointers, count, deadline_ns);
}

enum err pg_ask(struct pg *pg, struct pg_call *call, int64_t deadline_ns)
{
    return pg_trip(pg, call, 1, deadline_ns);
}

bool pg_is_null(const struct pg_call *call, int row, int column)
{
    const PGresult *r = call->data;
    return !r || row < 0 || row >= PQntuples(r) || column < 0 || column >= PQnfields(r) || PQgetisnull(r, row, column);
}

struct str pg_get(const struct pg_call *call, int row, int column)
{
    if (pg_is_null(call, row, column))
        return (struct str){NULL, 0};
    return (struct str){PQgetvalue(call->data, row, column), (size_t)PQgetlength(call->data, row, column)};
}

int64_t pg_get_i64(const struct pg_call *call, int row, int column)
{
    int64_t n = 0;
    return str_to_i64(pg_get(call, row, column), INT64_MIN, INT64_MAX, &n) ? 0 : n;
}

bool pg_get_bool(const struct pg_call *call, int row, int column)
{
    return str_eq(pg_get(call, row, column), STR("t"));
}
