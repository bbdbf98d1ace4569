#include "erasure/audit_receipts.h"

#include <stdlib.h>
#include <string.h>

#include "erasure/certificate.h"
#include "proof/facts.h"

#define CERTIFICATES_AT_ONCE 500

/* clang-format off */
#define IS_CERTIFIED(customer) \
    "EXISTS (SELECT FROM reclaim.erasures e WHERE e.customer_id = " customer " AND e.certificate_id IS NOT NULL)"
/* clang-format on */

/* A receipt that is open again must have a reason: rows came late, or a participant that was left out takes part again. Its erasure
 * is open then, too. */
static const struct statement audit_changed_receipts = {
    .name = "audit_changed_receipts",
    .sql = "SELECT f.customer_id, f.participant, r.customer_id IS NULL AS removed FROM (SELECT DISTINCT ON"
           " (customer_id, participant) * FROM reclaim.receipt_facts ORDER BY customer_id, participant, id DESC) f"
           " LEFT JOIN reclaim.cascade_receipts r ON r.customer_id = f.customer_id AND r.participant = f.participant"
           " WHERE r.customer_id IS NULL OR CASE WHEN r.status IN ('done', 'kept')"
           " THEN ROW (r.status, r.rows, r.late_rows, r.done_at, r.first_tried_at, r.late_at,"
           " CASE WHEN r.status = 'kept' THEN r.error END)"
           " IS DISTINCT FROM ROW (f.status, f.rows, f.late_rows, f.done_at, f.first_tried_at, f.late_at, f.reason)"
           " ELSE r.rows < f.rows OR f.status = 'done' AND (r.late_at IS NULL OR r.late_at <= f.done_at)"
           " OR " IS_CERTIFIED("f.customer_id") " END LIMIT 10000",
    .params = 0,
    .columns = "customer_id:uuid participant:text removed:bool",
};

static const struct statement audit_inserted_receipts = {
    .name = "audit_inserted_receipts",
    .sql = "SELECT r.customer_id, r.participant FROM reclaim.cascade_receipts r WHERE NOT EXISTS (SELECT"
           " FROM reclaim.receipt_facts f WHERE f.customer_id = r.customer_id AND f.participant = r.participant)"
           " AND (r.status IN ('done', 'kept') OR " IS_CERTIFIED(
               "r.customer_id") ")"
                                " OR NOT EXISTS (SELECT FROM reclaim.erasures e WHERE e.customer_id = r.customer_id) "
                                "LIMIT 10000",
    .params = 0,
    .columns = "customer_id:uuid participant:text",
};

/* A receipt that was done is finished again only after rows had come late. */
static const struct statement audit_repeated_facts = {
    .name = "audit_repeated_facts",
    .sql = "SELECT f.customer_id, f.participant FROM (SELECT n.*, lag(n.status) OVER w AS former,"
           " lag(n.done_at) OVER w AS former_done FROM reclaim.receipt_facts n"
           " WINDOW w AS (PARTITION BY n.customer_id, n.participant ORDER BY n.id)) f WHERE f.former = 'done'"
           " AND (f.late_at IS NULL OR f.late_at <= f.former_done) LIMIT 10000",
    .params = 0,
    .columns = "customer_id:uuid participant:text",
};

/* What contradicts itself, without a look into certificates. An erasure that was opened again has an open receipt, or is settled again.
 * Erasures that were complete before there were certificates are settled when
 * they were completed, and wait for theirs. */
static const struct statement audit_erasures = {
    .name = "audit_erasures",
    .sql = "SELECT e.customer_id, false AS removed FROM reclaim.erasures e WHERE CASE WHEN e.certificate_id IS NULL"
           " THEN e.completed_at IS NOT NULL AND e.settled_at IS DISTINCT FROM e.completed_at"
           " OR e.settled_at IS NULL AND e.cleared AND EXISTS (SELECT FROM reclaim.erasure_certificates c"
           " WHERE c.customer_id = e.customer_id) AND NOT EXISTS (SELECT FROM reclaim.cascade_receipts r"
           " WHERE r.customer_id = e.customer_id AND r.status NOT IN ('done', 'kept'))"
           " ELSE NOT EXISTS (SELECT FROM reclaim.erasure_certificates c WHERE c.certificate_id = e.certificate_id"
           " AND c.customer_id = e.customer_id) END"
           " UNION ALL SELECT DISTINCT f.customer_id, true FROM reclaim.receipt_facts f WHERE NOT EXISTS ("
           "SELECT FROM reclaim.erasures e WHERE e.customer_id = f.customer_id) LIMIT 10000",
    .params = 0,
    .columns = "customer_id:uuid removed:bool",
};

/* As claims have times. Years before Christ are told apart. */
#define CLAIM_TIME(column)                                                                                             \
    "pg_catalog.replace(pg_catalog.to_char(" FACT_TIME(column) ", 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\" AD'), ' AD', '')"

/* clang-format off */
static const struct statement audit_certificates = {
    .name = "audit_certificates",
    .sql = "SELECT c.id, c.certificate_id, c.customer_id, c.fact, c.jws, " CLAIM_TIME("c.completed_at") " AS completed,"
           " NOT EXISTS (SELECT FROM reclaim.erasure_certificates n WHERE n.customer_id = c.customer_id"
           " AND n.id > c.id) AS is_last, e.customer_id IS NULL AS removed,"
           " " CLAIM_TIME("e.requested_at") " AS requested, e.address_hash,"
           " " CLAIM_TIME("e.completed_at") " AS erased, e.certificate_id AS noted,"
           " e.settled_at IS NOT DISTINCT FROM c.settled_at AS settled"
           " FROM reclaim.erasure_certificates c LEFT JOIN reclaim.erasures e ON e.customer_id = c.customer_id"
           " WHERE c.id > $1::int8 ORDER BY c.id LIMIT $2::int8",
    .params = 2,
    .columns = "id:int8 certificate_id:uuid customer_id:uuid fact:text jws:text completed:text is_last:bool"
               " removed:bool requested:text address_hash:text erased:text noted:uuid settled:bool",
};
/* clang-format on */

enum certificate_column {
    ID,
    CERTIFICATE_ID,
    CUSTOMER_ID,
    FACT,
    JWS,
    COMPLETED,
    IS_LAST,
    REMOVED,
    REQUESTED,
    ADDRESS_HASH,
    ERASED,
    NOTED,
    SETTLED,
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
    enum err e = verify_ask(v, calls, COUNT_OF(calls));
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

static bool says(const json_t *claims, const char *name, struct str value)
{
    return str_eq(str_of(json_string_value(json_object_get(claims, name))), value);
}

/* The erasure as its last certificate says. It is not complete while it names none: it was opened again, or the head over the certificate
 * is not in the journal yet. */
static bool erasure_fits(const json_t *claims, const struct pg_call *rows, int row)
{
    return says(claims, "requested_at", pg_get(rows, row, REQUESTED)) &&
           says(json_object_get(claims, "address"), "hash", pg_get(rows, row, ADDRESS_HASH)) &&
           (pg_is_null(rows, row, NOTED)
                ? pg_is_null(rows, row, ERASED)
                : str_eq(pg_get(rows, row, NOTED), pg_get(rows, row, CERTIFICATE_ID)) &&
                      pg_get_bool(rows, row, SETTLED) && says(claims, "completed_at", pg_get(rows, row, ERASED)));
}

/* Compares with claims whose signature holds: what the tables say may be anything. */
static void check_certificate(struct log_verifier *v, const struct pg_call *rows, int row)
{
    struct why why;
    const char *id = pg_get(rows, row, CERTIFICATE_ID).at, *customer = pg_get(rows, row, CUSTOMER_ID).at;
    AUTO(json) json_t *claims = certificate_check(pg_get(rows, row, JWS), &v->set, &why);
    char *fact = claims ? certificate_fact(claims) : NULL;
    if (!claims)
        verify_report(v, "changed: certificate %s does not hold: %s", id, why.text);
    else if (!fact || !str_eq(str_of(fact), pg_get(rows, row, FACT)))
        verify_report(v, "changed: certificate %s says something else than what was sealed", id);
    else if (!says(claims, "jti", str_of(id)) || !says(claims, "sub", str_of(customer)) ||
             !says(claims, "completed_at", pg_get(rows, row, COMPLETED)))
        verify_report(v, "changed: certificate %s says something else than row %s of erasure_certificates", id,
                      pg_get(rows, row, ID).at);
    free(fact);
    if (pg_get_bool(rows, row, IS_LAST) && pg_get_bool(rows, row, REMOVED))
        verify_report(v, "removed: the erasure of customer %s", customer);
    else if (pg_get_bool(rows, row, IS_LAST) && claims && !erasure_fits(claims, rows, row))
        verify_report(v, "changed: the erasure of customer %s", customer);
}

enum err audit_receipts(struct log_verifier *v)
{
    enum err e = check_receipts(v);
    int64_t after = INT64_MIN;
    for (int count = CERTIFICATES_AT_ONCE; !e && count == CERTIFICATES_AT_ONCE;) {
        struct pg_call rows = {.ask = &audit_certificates, .args = {pg_i64(after), pg_i64(CERTIFICATES_AT_ONCE)}};
        if ((e = verify_ask(v, &rows, 1)))
            break;
        count = rows.rows;
        for (int i = 0; i < count; i++) {
            check_certificate(v, &rows, i);
            after = pg_get_i64(&rows, i, 0);
        }
    }
    return e;
}
