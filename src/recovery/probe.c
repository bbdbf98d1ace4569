#include "recovery/probe.h"

#include <string.h>

#include "base/clock.h"
#include "base/email.h"
#include "base/json.h"
#include "base/log.h"
#include "base/metrics.h"
#include "limits/headers.h"
#include "pg/arrays.h"
#include "recovery/body.h"

/* Time for a look-up, without the company query's own time-out. */
#define LOOKUP_NS (2 * NS_PER_S)
#define BATCH_MOST 256
#define BATCH_COMPANY_MS 500 /* the most a batch waits for the company query, whatever the setting */
#define WAITING_MOST 16384

METRIC_COUNTER(probes, "reclaim_probe_answers_total", "Answers of check-email-status.", "status", "orphaned");
METRIC_COUNTER(alone_total, "reclaim_probe_alone_total", "Look-ups outside a batch, because their batch was too slow.");

#define USER_COLUMNS                                                                                                   \
    "(u.email_confirmed_at IS NOT NULL) AS verified,"                                                                  \
    " to_char(u.email_confirmed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"') AS verified_at,"           \
    " to_char(u.last_sign_in_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"') AS last_sign_in_at"

const struct statement probe_find_user = {
    .name = "probe_find_user",
    .sql = "SELECT 1::int8 AS n, " USER_COLUMNS
           " FROM auth.users u WHERE u.email = $1 AND u.is_sso_user = false AND u.deleted_at IS NULL",
    .params = 1,
    .columns = "n:int8 verified:bool verified_at:text last_sign_in_at:text",
};

const struct statement probe_find_users = {
    .name = "probe_find_users",
    .sql = "SELECT q.n, " USER_COLUMNS " FROM unnest($1::text[]) WITH ORDINALITY AS q(email, n) JOIN auth.users u"
           " ON u.email = q.email AND u.is_sso_user = false AND u.deleted_at IS NULL",
    .params = 1,
    .columns = "n:int8 verified:bool verified_at:text last_sign_in_at:text",
};

/* Without this, a user hidden by row security would be answered as not registered. */
const struct statement probe_sees_users = {
    .name = "probe_sees_users",
    .sql = "SELECT reclaim.sees_all_rows('auth.users', 'SELECT') AS sees_all",
    .params = 0,
    .columns = "sees_all:bool",
};

const struct statement probe_limit_company_query = {
    .name = "probe_limit_company_query",
    .sql = "SELECT set_config('statement_timeout', $1, true)",
    .params = 1,
    .columns = "set_config:text",
};

enum tristate { NO, YES, UNKNOWN };

/* One request under way. */
struct probe_request {
    struct ticket ticket;
    struct batch_item item;
    struct job job; /* for a look-up outside the batch */
    struct request *rq;
    struct probe *probe;
    struct str email; /* absent when the request was malformed */
    struct body_problems problems;
    bool found, answered;
};

static bool may_have_correlation_id(struct str body);
static void read_request(struct probe_request *q);
static void limits_decided(struct ticket *ticket);
static void refuse_limited(struct probe_request *q);
static enum err look_up_batch(void *context, struct pg *pg, struct batch_item **items, size_t count);
static void batch_done(void *context, struct batch_item *item, enum err e);
static enum err look_up_alone(struct job *job, struct pg *pg);
static void looked_up_alone(struct job *job, enum err e);
static void write_answer(struct probe_request *q, const struct pg_call *user, int row, enum tristate has_company);
static void finish(struct probe_request *q, enum err e);

/* 1. On the loop: a limit that is known to be reached refuses before the body is parsed. */
void probe_handle(struct request *rq)
{
    struct probe *probe = rq->route->context;
    struct probe_request *q = request_work(rq, sizeof *q);
    if (!q) {
        contract_family_refuse(rq, 503);
        reply_send(rq, 503);
        return;
    }
    q->rq = rq;
    q->probe = probe;
    q->ticket.decided = limits_decided;
    ticket_count_client(probe->admission, &q->ticket, TIER_PROBE, probe->identifier_key, &rq->client);
    if (!may_have_correlation_id(rq->body) && admission_refuse(probe->admission, &q->ticket))
        return;
    read_request(q);
    admission_ask(probe->admission, &q->ticket);
}

/* Cheaper than parsing the body. False is always right: a key stands there literally, or with escapes. */
static bool may_have_correlation_id(struct str body)
{
    return memmem(body.at, body.len, "correlationId", strlen("correlationId")) || memchr(body.at, '\\', body.len);
}

static void read_request(struct probe_request *q)
{
    struct body body;
    if (body_read_probe(q->rq->arena, q->rq->body, &body) == OK)
        q->email = body.email;
    else
        q->problems = body.problems;
    if (*body.correlation_id)
        request_correlate(q->rq, str_of(body.correlation_id));
}

/* 2. On the batching thread, or still on the loop. */
static void limits_decided(struct ticket *ticket)
{
    struct probe_request *q = OWNER_OF(ticket, struct probe_request, ticket);
    struct request *rq = q->rq;
    struct batch *lookup = atomic_load(&q->probe->lookup);
    limit_headers(rq, ticket);
    if (ticket->verdict == ADMISSION_REFUSED)
        refuse_limited(q);
    else if (ticket->verdict == ADMISSION_GRANTED && !q->email.at)
        contract_refuse_malformed(rq, q->probe->contract, &q->problems);
    else if (ticket->verdict == ADMISSION_GRANTED && lookup && batch_add(lookup, &q->item) == OK)
        return;
    else
        contract_family_refuse(rq, 503);
    reply_send(rq, rq->reply.status);
}

static void refuse_limited(struct probe_request *q)
{
    int64_t seconds = limit_retry_after_s(&q->ticket);
    contract_refuse_limited(q->rq, q->probe->contract, limit_wait_text(q->rq->arena, seconds), seconds);
    reply_unhold_when_crowded(q->rq);
}

static struct probe_request *probe_of(struct batch_item *item)
{
    return OWNER_OF(item, struct probe_request, item);
}

/* 3. On a worker: users and companies for a batch, in one trip. Those whose company query was too slow stay open. */
static enum err look_up_batch(void *context, struct pg *pg, struct batch_item **items, size_t count)
{
    struct probe *probe = context;
    AUTO(buf) struct buf addresses = buf_new(BATCH_MOST * (EMAIL_MAX + 4));
    for (size_t i = 0; i < count; i++)
        array_add_text(&addresses, probe_of(items[i])->email);
    if (!array_end(&addresses))
        return addresses.failed;
    int64_t short_ms = atomic_load(&probe->timeout_ms) / 4;
    if (short_ms > BATCH_COMPANY_MS)
        short_ms = BATCH_COMPANY_MS;
    struct pg_call calls[] = {
        {.ask = &probe_sees_users},
        {.ask = &probe_find_users, .args = {pg_text(addresses.at)}},
        {.ask = &probe_limit_company_query, .args = {pg_i64(short_ms ? short_ms : 1)}},
        {.ask = &probe->orphans->have_company, .args = {pg_text(addresses.at)}},
    };
    struct pg_call *sees = &calls[0], *users = &calls[1], *companies = &calls[3];
    enum err e = pg_trip(pg, calls, COUNT_OF(calls), clock_ns() + LOOKUP_NS);
    if (users->err)
        return e;

    enum tristate has_company[BATCH_MOST];
    for (size_t i = 0; i < count; i++)
        has_company[i] = UNKNOWN;
    for (int row = 0; companies->err == OK && row < companies->rows; row++)
        if (!pg_is_null(companies, row, 1))
            has_company[pg_get_i64(companies, row, 0) - 1] = pg_get_bool(companies, row, 1) ? YES : NO;
    for (int row = 0; row < users->rows; row++) {
        size_t i = (size_t)pg_get_i64(users, row, 0) - 1;
        probe_of(items[i])->found = true;
        if (companies->err == OK)
            write_answer(probe_of(items[i]), users, row, has_company[i]);
    }
    for (size_t i = 0; i < count && pg_get_bool(sees, 0, 0); i++)
        if (!probe_of(items[i])->found)
            write_answer(probe_of(items[i]), users, -1, NO);
    return OK;
}

/* 4. For each of the batch, on the same worker: what stayed open is looked up alone. */
static void batch_done(void *context, struct batch_item *item, enum err e)
{
    struct probe *probe = context;
    struct probe_request *q = probe_of(item);
    log_correlate(q->rq->correlation_id);
    if (!q->answered && e != ERR_CLOSED && e != ERR_TIMEOUT) {
        counter_add(&alone_total, 1);
        int64_t limit_ns = LOOKUP_NS + atomic_load(&probe->timeout_ms) * NS_PER_MS;
        q->job = (struct job){look_up_alone, looked_up_alone, clock_ns() + limit_ns, q->rq->correlation_id};
        if (pool_submit(probe->pool, &q->job) == OK)
            return;
    }
    finish(q, e);
}

/* 5. On a worker: the same for one address. The company query has its own short time-out; when it fails, the answer has the
 * user's part only. */
static enum err look_up_alone(struct job *job, struct pg *pg)
{
    struct probe_request *q = OWNER_OF(job, struct probe_request, job);
    struct pg_call calls[] = {
        {.ask = &probe_sees_users},
        {.ask = &probe_find_user, .args = {pg_text(q->email.at)}},
        {.ask = &probe_limit_company_query, .args = {pg_i64(atomic_load(&q->probe->timeout_ms))}},
        {.ask = &q->probe->orphans->has_company, .args = {pg_text(q->email.at)}},
    };
    struct pg_call *sees = &calls[0], *user = &calls[1], *company = &calls[3];
    enum err e = pg_trip(pg, calls, COUNT_OF(calls), job->deadline_ns);
    if (user->err)
        return e;
    if (user->rows == 0 && !pg_get_bool(sees, 0, 0))
        return ERR_DATABASE;

    enum tristate has_company = UNKNOWN;
    if (company->err == OK && company->rows > 0 && !pg_is_null(company, 0, 0))
        has_company = pg_get_bool(company, 0, 0) ? YES : NO;
    else if (user->rows > 0)
        log_warn("company query failed", F_STR("sqlstate", company->sqlstate),
                 F_STR("error", e ? err_name(e) : "row security"));
    write_answer(q, user, user->rows - 1, has_company);
    return OK;
}

static void looked_up_alone(struct job *job, enum err e)
{
    finish(OWNER_OF(job, struct probe_request, job), e);
}

/* The answer, from any of these threads. */
static void finish(struct probe_request *q, enum err e)
{
    if (!q->answered) {
        log_warn("probe failed", F_STR("error", err_name(e)));
        contract_family_refuse(q->rq, 503);
    }
    reply_send(q->rq, q->rq->reply.status);
}

static void json_tristate(struct json_writer *w, enum tristate t)
{
    if (t == UNKNOWN)
        json_nil(w);
    else
        json_bool(w, t == YES);
}

/* Writes the answer from that row of `user`; -1 when there is no user. */
static void write_answer(struct probe_request *q, const struct pg_call *user, int row, enum tristate has_company)
{
    struct request *rq = q->rq;
    bool registered = row >= 0;
    bool verified = registered && pg_get_bool(user, row, 1);
    const char *status = !registered ? "not_registered" : verified ? "registered_verified" : "registered_unverified";
    enum tristate orphaned = !registered ? NO : has_company == UNKNOWN ? UNKNOWN : has_company == YES ? NO : YES;
    counter_add(&probes, 1, status, orphaned == UNKNOWN ? "unknown" : orphaned == YES ? "true" : "false");

    AUTO(buf) struct buf out = buf_new(1024);
    struct json_writer w = json_to(&out);
    json_open(&w, '{');
    json_key(&w, "data");
    json_open(&w, '{');
    json_key(&w, "status");
    json_str(&w, str_of(status));
    json_key(&w, "verifiedAt");
    json_str(&w, registered ? pg_get(user, row, 2) : str_of(NULL));
    json_key(&w, "lastSignInAt");
    json_str(&w, registered ? pg_get(user, row, 3) : str_of(NULL));
    json_key(&w, "hasCompanyData");
    json_tristate(&w, registered ? has_company : NO);
    json_key(&w, "isOrphaned");
    json_tristate(&w, orphaned);
    json_key(&w, "correlationId");
    json_str(&w, str_of(rq->correlation_id));
    json_close(&w, '}');
    json_close(&w, '}');
    reply_body(rq, "application/json", arena_copy(rq->arena, buf_str(&out)));
    rq->reply.status = 200;
    q->answered = true;
}

enum err probe_open(struct probe *probe, struct pool *pool)
{
    struct batch *lookup = batch_new(&(struct batch_config){.pool = pool,
                                                            .most = BATCH_MOST,
                                                            .capacity = WAITING_MOST,
                                                            .in_flight = 2,
                                                            .limit_ns = LOOKUP_NS,
                                                            .context = probe,
                                                            .run = look_up_batch,
                                                            .done = batch_done});
    if (!lookup)
        return ERR_MEMORY;
    probe->pool = pool;
    atomic_store(&probe->lookup, lookup);
    return OK;
}

void probe_close(struct probe *probe)
{
    batch_free(atomic_exchange(&probe->lookup, NULL));
}
