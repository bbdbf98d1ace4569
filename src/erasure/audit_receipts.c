#include "erasure/audit_receipts.h"

#include <stdlib.h>
#include <string.h>

#include "erasure/certificate.h"
#include "proof/facts.h"

#define CERTIFICATES_AT_ONCE 500

/* A receipt that is open again must have a reason: rows came late, or a participant that was left out takes part again. */
static const struct statement audit_changed_receipts = {
    .name = "audit_changed_receipts",
    .sql =
        "SELECT f.customer_id, f.participant, r.customer_id IS NULL AS removed FROM (SELECT DISTINCT ON"
        " (customer_id, participant) * FROM reclaim.receipt_facts ORDER BY customer_id, participant, id DESC) f"
        " LEFT JOIN reclaim.cascade_receipts r ON r.customer_id = f.customer_id AND r.participant = f.participant"
        " WHERE r.customer_id IS NULL OR CASE WHEN r.status IN ('done', 'kept')"
        " THEN ROW (r.status, r.rows, r.late_rows, r.done_at, r.first_tried_at,"
        " CASE WHEN r.status = 'kept' THEN r.error END)"
        " IS DISTINCT FROM ROW (f.status, f.rows, f.late_rows, f.done_at, f.first_tried_at, f.reason)"
        " ELSE r.rows < f.rows OR f.status = 'done' AND (r.late_at IS NULL OR r.late_at <= f.done_at) END LIMIT 10000",
    .params = 0,
    .columns = "customer_id:uuid participant:text removed:bool",
};

static const struct statement audit_inserted_receipts = {
    .name = "audit_inserted_receipts",
    .sql = "SELECT r.customer_id, r.participant FROM reclaim.cascade_receipts r WHERE r.status IN ('done', 'kept')"
           " AND NOT EXISTS (SELECT FROM reclaim.receipt_facts f WHERE f.customer_id = r.customer_id"
           " AND f.participant = r.participant) LIMIT 10000",
    .params = 0,
    .columns = "customer_id:uuid participant:text",
};

/* A receipt that was done is done again only after rows had come late. */
static const struct statement audit_repeated_facts = {
    .name = "audit_repeated_facts",
    .sql = "SELECT f.customer_id, f.participant FROM (SELECT n.*, lag(n.status) OVER w AS former,"
           " lag(n.done_at) OVER w AS former_done FROM reclaim.receipt_facts n"
           " WINDOW w AS (PARTITION BY n.customer_id, n.participant ORDER BY n.id)) f WHERE f.former = 'done'"
           " AND (f.status <> 'done' OR f.late_at IS NULL OR f.late_at <= f.former_done) LIMIT 10000",
    .params = 0,
    .columns = "customer_id:uuid participant:text",
};

static const struct statement audit_erasures = {
    .name = "audit_erasures",
    .sql = "SELECT p.customer_id, e.customer_id IS NULL AS removed FROM (SELECT DISTINCT ON (customer_id) *,"
           " fact::jsonb AS claims FROM reclaim.erasure_certificates ORDER BY customer_id, id DESC) p"
           " LEFT JOIN reclaim.erasures e ON e.customer_id = p.customer_id WHERE e.customer_id IS NULL"
           " OR p.claims ->> 'sub' IS DISTINCT FROM p.customer_id::text"
           " OR p.claims ->> 'requested_at' IS DISTINCT FROM " FACT_TIME(
               "e.requested_at") " OR p.claims -> 'address' ->> 'hash' IS DISTINCT FROM e.address_hash"
                                 " OR (e.completed_at IS NOT NULL AND e.certificate_id IS NOT NULL AND "
                                 "(e.certificate_id <> p.certificate_id"
                                 " OR p.claims ->> 'completed_at' IS DISTINCT FROM " FACT_TIME(
                                     "e.completed_at") "))"
                                                       " UNION ALL SELECT e.customer_id, false FROM reclaim.erasures e "
                                                       "WHERE e.completed_at IS NOT NULL"
                                                       " AND e.certificate_id IS NULL AND e.settled_at IS NULL LIMIT "
                                                       "10000",
    .params = 0,
    .columns = "customer_id:uuid removed:bool",
};

static const struct statement audit_certificates = {
    .name = "audit_certificates",
    .sql = "SELECT id, certificate_id, fact, jws FROM reclaim.erasure_certificates WHERE id > $1::int8 ORDER BY id"
           " LIMIT $2::int8",
    .params = 2,
    .columns = "id:int8 certificate_id:uuid fact:text jws:text",
};

const struct statement *const audit_receipts_statements[] = {
    &audit_changed_receipts, &audit_inserted_receipts, &audit_repeated_facts, &audit_erasures, &audit_certificates};
const size_t audit_receipts_statement_count = COUNT_OF(audit_receipts_statements);

static enum err check_receipts(struct log_verifier *v)
{
    struct pg_call calls[] = {{.ask = &audit_changed_receipts},
                              {.ask = &audit_inserted_receipts},
                              {.ask = &audit_repeated_facts},
                              {.ask = &audit_erasures}};
    enum err e = pg_trip(v->pg, calls, COUNT_OF(calls), v->deadline_ns());
    if (e)
        return e;
    for (int i = 0; i < calls[0].rows; i++)
        verify_report(v, "%s: the receipt of %s for customer %s", pg_get_bool(&calls[0], i, 2) ? "removed" : "changed",
                      pg_get(&calls[0], i, 1).at, pg_get(&calls[0], i, 0).at);
    for (int i = 0; i < calls[1].rows; i++)
        verify_report(v, "inserted: the receipt of %s for customer %s", pg_get(&calls[1], i, 1).at,
                      pg_get(&calls[1], i, 0).at);
    for (int i = 0; i < calls[2].rows; i++)
        verify_report(v, "inserted: the receipt of %s for customer %s was done before, and nothing had come late",
                      pg_get(&calls[2], i, 1).at, pg_get(&calls[2], i, 0).at);
    for (int i = 0; i < calls[3].rows; i++)
        verify_report(v, "%s: the erasure of customer %s", pg_get_bool(&calls[3], i, 1) ? "removed" : "changed",
                      pg_get(&calls[3], i, 0).at);
    return OK;
}

static void check_certificate(struct log_verifier *v, const struct pg_call *rows, int row)
{
    struct why why;
    AUTO(json) json_t *claims = certificate_check(pg_get(rows, row, 3), &v->set, &why);
    char *fact = claims ? certificate_fact(claims) : NULL;
    if (!claims)
        verify_report(v, "changed: certificate %s does not hold: %s", pg_get(rows, row, 1).at, why.text);
    else if (!fact || !str_eq(str_of(fact), pg_get(rows, row, 2)))
        verify_report(v, "changed: certificate %s says something else than what was sealed", pg_get(rows, row, 1).at);
    free(fact);
}

enum err audit_receipts(struct log_verifier *v)
{
    enum err e = check_receipts(v);
    int64_t after = 0;
    for (int count = CERTIFICATES_AT_ONCE; !e && count == CERTIFICATES_AT_ONCE;) {
        struct pg_call rows = {.ask = &audit_certificates, .args = {pg_i64(after), pg_i64(CERTIFICATES_AT_ONCE)}};
        if ((e = pg_ask(v->pg, &rows, v->deadline_ns())))
            break;
        count = rows.rows;
        for (int i = 0; i < count; i++) {
            check_certificate(v, &rows, i);
            after = pg_get_i64(&rows, i, 0);
        }
    }
    return e;
}
