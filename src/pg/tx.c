#include "pg/tx.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "pg/inside.h"

/* Upper limit of the time-outs sent to the server, which are milliseconds in an int4. */
#define TIMEOUT_MAX_MS (24 * 3600 * 1000)
#define RESERVE_MAX_MS 500

/* Explicitly READ COMMITTED: flows take a lock, then read what the previous holder committed. */
static const struct statement tx_start = {"tx_start", "BEGIN ISOLATION LEVEL READ COMMITTED", 0, ""};
static const struct statement tx_end = {"tx_end", "COMMIT", 0, ""};
static const struct statement tx_limits = {
    .name = "tx_limits",
    .sql = "SELECT pg_catalog.set_config('statement_timeout', $1, true),"
           " pg_catalog.set_config('lock_timeout', $2, true),"
           " pg_catalog.set_config('idle_in_transaction_session_timeout', $3, true)",
    .params = 3,
    .columns = "set_config:text set_config:text set_config:text",
};

struct tx *tx_begin(struct pg *pg, int64_t deadline_ns)
{
    assert(pg->tx.state == TX_ENDED);
    pg->tx = (struct tx){.pg = pg, .deadline_ns = deadline_ns, .state = TX_NEW};
    return &pg->tx;
}

void tx_wait_for_locks(struct tx *tx, int most_ms)
{
    assert(tx->state == TX_NEW);
    tx->lock_ms = most_ms;
}

static enum err fail(struct tx *tx, enum err e)
{
    tx->state = TX_FAILED;
    tx->failure = e;
    return e;
}

/* Statements get all but a moment of the time left: when the server cancels first, the connection stays usable. */
static int allowed_of(int left_ms)
{
    int reserve_ms = left_ms / 10 < RESERVE_MAX_MS ? left_ms / 10 : RESERVE_MAX_MS;
    return left_ms > 10 ? left_ms - reserve_ms : left_ms;
}

/* Later trips send new time-outs only when the ones sent have become too long, so that quick ones send none. */
static bool must_send_limits(const struct tx *tx, int left_ms)
{
    int slack_ms = tx->sent_ms / 4 < RESERVE_MAX_MS / 2 ? tx->sent_ms / 4 : RESERVE_MAX_MS / 2;
    return !tx->sent_ms || left_ms < tx->sent_ms - slack_ms;
}

/* Whether the server cancelled a statement because of these time-outs, and not at somebody's request. */
static bool ran_out_of_time(const struct tx *tx, struct pg_call *const *calls, size_t count)
{
    if (clock_ms_until(tx->deadline_ns, TIMEOUT_MAX_MS) > 2 * RESERVE_MAX_MS)
        return false;
    for (size_t i = 0; i < count; i++)
        if (strcmp(calls[i]->sqlstate, "57014") == 0)
            return true;
    return false;
}

static enum err run(struct tx *tx, struct pg_call *calls, size_t count, struct pg_call *last)
{
    if (tx->state == TX_FAILED || tx->state == TX_ENDED || count > PG_CALLS_MAX) {
        pg_reset_calls(calls, count);
        return tx->state == TX_FAILED ? tx->failure : ERR_INPUT;
    }
    int left_ms = clock_ms_until(tx->deadline_ns, TIMEOUT_MAX_MS);
    if (left_ms == 0) {
        pg_reset_calls(calls, count);
        return fail(tx, ERR_TIMEOUT);
    }
    int allowed_ms = allowed_of(left_ms);
    int lock_ms = tx->lock_ms && tx->lock_ms < allowed_ms ? tx->lock_ms : allowed_ms;
    struct pg_call start = {.ask = &tx_start};
    struct pg_call limits = {.ask = &tx_limits, .args = {pg_i64(allowed_ms), pg_i64(lock_ms), pg_i64(left_ms)}};
    struct pg_call *all[TRIP_CALLS_MAX];
    size_t n = 0;
    if (tx->state == TX_NEW)
        all[n++] = &start;
    if (must_send_limits(tx, left_ms)) {
        all[n++] = &limits;
        tx->sent_ms = left_ms;
    }
    for (size_t i = 0; i < count; i++)
        all[n++] = &calls[i];
    if (last)
        all[n++] = last;
    tx->state = TX_OPEN;
    enum err e = pg_trip_of(tx->pg, all, n, tx->deadline_ns);
    if (e == ERR_DATABASE && ran_out_of_time(tx, all, n))
        e = ERR_TIMEOUT;
    return e ? fail(tx, e) : OK;
}

enum err tx_trip(struct tx *tx, struct pg_call *calls, size_t count)
{
    return run(tx, calls, count, NULL);
}

enum err tx_commit(struct tx *tx, struct pg_call *calls, size_t count)
{
    /* BEGIN was not sent and there is nothing to run. */
    if (tx->state == TX_NEW && count == 0) {
        tx->state = TX_ENDED;
        return OK;
    }
    struct pg_call end = {.ask = &tx_end};
    enum err e = run(tx, calls, count, &end);
    if (e)
        return e;
    /* COMMIT of a failed transaction succeeds with the command tag ROLLBACK. */
    tx->state = TX_ENDED;
    return strcmp(PQcmdStatus((PGresult *)(uintptr_t)end.data), "COMMIT") == 0 ? OK : ERR_DATABASE;
}

void tx_cleanup(struct tx **tx)
{
    struct tx *t = *tx;
    if (!t || t->state == TX_ENDED)
        return;
    if (t->state != TX_NEW)
        pg_end_transaction(t->pg);
    t->state = TX_ENDED;
}
