/* GET /v1/billing/accounts, /v1/billing/charges and /v1/billing/subscriptions. */
#include "api/db_request.h"
#include "api/read.h"
#include "billing/billing.h"

#define LIST .columns = "id:uuid object:text"

/* $1: the id that the page before ended with, or null; $2: how many; $3: of which customer or account, or null for all.
 * OR would keep the planner from an index, so each list is two statements. */
#define BY_ID(table, object, condition)                                                                                \
    PAGE_SQL("SELECT r.id, reclaim." object "(r)::text AS object FROM reclaim." table " r WHERE " condition            \
             "r.id > coalesce($1::uuid, '" UUID_NIL "') ORDER BY r.id LIMIT $2::int8")

static const struct statement accounts_all = {
    .name = "billing_accounts_all",
    .sql = BY_ID("billing_accounts", "billing_account_object", ""),
    .params = 2,
    LIST,
};

static const struct statement accounts_of = {
    .name = "billing_accounts_of",
    .sql = BY_ID("billing_accounts", "billing_account_object", "r.customer_id = $3::uuid AND "),
    .params = 3,
    LIST,
};

static const struct statement charges_all = {
    .name = "billing_charges_all",
    .sql = BY_ID("billing_charges", "billing_charge_object", ""),
    .params = 2,
    LIST,
};

/* In the order of time, by the index of an account's charges. */
static const struct statement charges_of = {
    .name = "billing_charges_of",
    .sql = "WITH last AS MATERIALIZED (SELECT (SELECT l.occurred_at FROM reclaim.billing_charges l"
           "   WHERE l.id = $1::uuid) AS at)"
           " SELECT c.id, reclaim.billing_charge_object(c)::text AS object FROM reclaim.billing_charges c"
           " WHERE c.billing_account_id = $3::uuid"
           " AND c.occurred_at >= CASE WHEN $1::uuid IS NULL THEN '-infinity' ELSE (SELECT at FROM last) END"
           " AND ($1::uuid IS NULL OR (c.occurred_at, c.id) > ((SELECT at FROM last), $1::uuid))"
           " ORDER BY c.occurred_at, c.id LIMIT $2::int8",
    .params = 3,
    LIST,
};

static const struct statement subscriptions_all = {
    .name = "billing_subscriptions_all",
    .sql = BY_ID("billing_subscriptions", "billing_subscription_object", ""),
    .params = 2,
    LIST,
};

static const struct statement subscriptions_of = {
    .name = "billing_subscriptions_of",
    .sql = BY_ID("billing_subscriptions", "billing_subscription_object", "r.billing_account_id = $3::uuid AND "),
    .params = 3,
    LIST,
};

const struct statement *const billing_list_statements[] = {
    &accounts_all, &accounts_of, &charges_all, &charges_of, &subscriptions_all, &subscriptions_of,
};
const size_t billing_list_statement_count = COUNT_OF(billing_list_statements);

/* Answers with a page of all, or of those of the id that the query names. */
static void list(struct request *rq, struct billing *context, const char *name, const char *wrong,
                 const struct statement *all, const struct statement *of)
{
    struct str one = request_query(rq, name);
    struct list_page page;
    if (one.at && !str_is_uuid(one)) {
        reply_refuse(rq, 400, "INVALID_ID", wrong);
        return;
    }
    if (!list_page_read(rq, &page))
        return;
    struct pg_call call = {.ask = one.at ? of : all,
                           .args = {pg_text_or_null(page.after), pg_i64(page.limit + 1),
                                    one.at ? pg_text(arena_copy(rq->arena, one).at) : pg_null()}};
    read_page(rq, atomic_load(&context->pool), &page, &call);
}

void accounts_list_handle(struct request *rq, const struct caller *caller, void *billing)
{
    (void)caller;
    list(rq, billing, "customer_id", "customer_id must be a UUID.", &accounts_all, &accounts_of);
}

void charges_list_handle(struct request *rq, const struct caller *caller, void *billing)
{
    (void)caller;
    list(rq, billing, "billing_account_id", "billing_account_id must be a UUID.", &charges_all, &charges_of);
}

void subscriptions_list_handle(struct request *rq, const struct caller *caller, void *billing)
{
    (void)caller;
    list(rq, billing, "billing_account_id", "billing_account_id must be a UUID.", &subscriptions_all,
         &subscriptions_of);
}
