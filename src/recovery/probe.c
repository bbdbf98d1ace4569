#include "recovery/probe.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/metrics.h"
#include "recovery/email.h"

/* For the whole look-up, the company query's own time-out included. */
#define PROBE_DEADLINE_NS (2 * NS_PER_S)

METRIC_COUNTER(probes, "reclaim_probe_answers_total", "Answers of check-email-status.", "status", "orphaned");

const struct statement probe_find_user = {
    .name = "probe_find_user",
    .sql = "SELECT (u.email_confirmed_at IS NOT NULL) AS verified,"
           " to_char(u.email_confirmed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"') AS verified_at,"
           " to_char(u.last_sign_in_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"') AS last_sign_in_at"
           " FROM auth.users u WHERE u.email = $1 AND u.is_sso_user = false AND u.deleted_at IS NULL",
    .params = 1,
    .columns = "verified:bool verified_at:text last_sign_in_at:text",
};

const struct statement probe_limit_company_query = {
    .name = "probe_limit_company_query",
    .sql = "SELECT set_config('statement_timeout', $1, true)",
    .params = 1,
    .columns = "set_config:text",
};

enum tristate { NO, YES, UNKNOWN };

struct probe_job {
    struct job job;
    struct request *rq;
    struct probe *probe;
    const char *email;
};

static void json_tristate(struct json_writer *w, enum tristate t)
{
    if (t == UNKNOWN)
        json_nil(w);
    else
        json_bool(w, t == YES);
}

static void tell(struct request *rq, const struct pg_call *user, enum tristate has_company)
{
    bool registered = user->rows > 0;
    bool verified = registered && pg_get_bool(user, 0, 0);
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
    json_str(&w, registered ? pg_get(user, 0, 1) : str_of(NULL));
    json_key(&w, "lastSignInAt");
    json_str(&w, registered ? pg_get(user, 0, 2) : str_of(NULL));
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
}

/* On a worker: both questions in one trip. The company query has its own short time-out, and whatever becomes of it,
 * what is known of the user is answered. */
static enum err ask(struct job *job, struct pg *pg)
{
    struct probe_job *p = OWNER_OF(job, struct probe_job, job);
    struct pg_call calls[] = {
        {.ask = &probe_find_user, .args = {pg_text(p->email)}},
        {.ask = &probe_limit_company_query, .args = {pg_i64(atomic_load(&p->probe->timeout_ms))}},
        {.ask = &p->probe->orphans->has_company, .args = {pg_text(p->email)}},
    };
    struct pg_call *user = &calls[0], *company = &calls[2];
    enum err e = pg_trip(pg, calls, COUNT_OF(calls), job->deadline_ns);
    if (user->err)
        return e;

    enum tristate has_company = UNKNOWN;
    if (company->err == OK && company->rows > 0 && !pg_is_null(company, 0, 0))
        has_company = pg_get_bool(company, 0, 0) ? YES : NO;
    else if (user->rows > 0)
        log_warn("company query failed", F_STR("sqlstate", company->sqlstate),
                 F_STR("error", e ? err_name(e) : "row security"));
    tell(p->rq, user, has_company);
    return OK;
}

static void answer(struct job *job, enum err e)
{
    struct probe_job *p = OWNER_OF(job, struct probe_job, job);
    if (e) {
        log_warn("probe failed", F_STR("error", err_name(e)));
        contract_family_refuse(p->rq, 503);
    }
    reply_send(p->rq, p->rq->reply.status);
}

static enum err read_request(struct request *rq, struct str *ret_email)
{
    AUTO(json) json_t *body = json_read_object(rq->body, NULL);
    struct str email, correlation_id;
    if (!body)
        return ERR_INPUT;
    enum err e = json_get_str(body, "correlationId", &correlation_id);
    if (e == OK && str_is_uuid(correlation_id))
        request_correlate(rq, correlation_id);
    else if (e != ERR_MISSING)
        return ERR_INPUT;
    if ((e = json_get_str(body, "email", &email)))
        return e;
    return email_normalise(rq->arena, email, ret_email);
}

void probe_handle(struct request *rq)
{
    struct probe *probe = rq->route->room;
    struct pool *pool = atomic_load(&probe->pool);
    struct str email;
    if (read_request(rq, &email)) {
        contract_refuse(rq, probe->contract, probe->contract->malformed);
        reply_send(rq, rq->reply.status);
        return;
    }
    struct probe_job *p = arena_take(rq->arena, sizeof *p);
    if (p) {
        *p = (struct probe_job){
            {ask, answer, rq->arrived_ns + PROBE_DEADLINE_NS, rq->correlation_id}, rq, probe, email.at};
        if (pool && pool_submit(pool, &p->job) == OK)
            return;
    }
    contract_family_refuse(rq, 503);
    reply_send(rq, 503);
}
