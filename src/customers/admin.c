/* Freezing, recovering and reading customers, by admins; and what a customer may read of itself. */
#include "api/fields.h"
#include "api/read.h"
#include "customers/freeze_http.h"
#include "customers/statements.h"

#define CUSTOMERS_TEXT_MAX 400 /* bytes of a search; 100 characters of it count */

/* NULL after an answer was sent. */
static const char *read_id(struct request *rq)
{
    char *id = request_work(rq, 37);
    if (!id) {
        reply_fault(rq, ERR_FULL);
        return NULL;
    }
    return request_id(rq, 0, id) ? id : NULL;
}

/* False after an answer was sent. The body may be empty. */
static bool read_reason(struct request *rq, const char **ret)
{
    static const char wrong[] = "Send {\"reason\":…}, why the customer is frozen, up to 1000 bytes; or no body.";
    static const struct field reason = {
        .name = "reason", .bytes_max = FREEZE_REASON_MAX, .code = "INVALID_REASON", .message = wrong};
    *ret = NULL;
    if (str_trim(rq->body).len == 0)
        return true;
    AUTO(fields) struct fields f = fields_read(rq->arena, rq->body, "INVALID_REASON", wrong);
    *ret = field_copy(&f, &reason);
    return !fields_refuse(&f, rq);
}

void customer_freeze_handle(struct request *rq, const struct caller *caller, void *customers)
{
    const char *id = read_id(rq), *reason;
    if (!id || !read_reason(rq, &reason))
        return;
    struct actor actor = actor_of(rq, caller);
    change_over_http(rq, customers, id, CUSTOMER_FREEZES, &actor, reason);
}

void customer_recover_handle(struct request *rq, const struct caller *caller, void *customers)
{
    const char *id = read_id(rq);
    if (!id)
        return;
    struct actor actor = actor_of(rq, caller);
    change_over_http(rq, customers, id, CUSTOMER_RECOVERS, &actor, NULL);
}

void customer_show_handle(struct request *rq, const struct caller *caller, void *customers)
{
    struct customers *context = customers;
    char id[37];
    if (!request_id(rq, 0, id))
        return;
    if (caller_sees(caller, id))
        read_one(rq, customers_pool(context, caller_sees_all(caller) ? LANE_BACKGROUND : LANE_ACCOUNT),
                 caller_sees_all(caller) ? &customer_show_to_admin : &customer_show, id, "CUSTOMER_NOT_FOUND",
                 "There is no customer with this id.");
    else if (caller->standing == STANDING_FROZEN)
        authenticator_refuse_frozen(context->authenticator, rq, caller);
    else
        reply_refuse(rq, 403, "FORBIDDEN", "These credentials may not see this customer.");
}

/* What the query asks for; NULL: all. */
struct customers_query {
    const char *status, *text;
    bool held, counts;
};

/* False after an answer was sent. */
static bool query_read(struct request *rq, struct customers_query *ret)
{
    struct str status = request_query(rq, "status"), held = request_query(rq, "held"), text;
    struct str counts = request_query(rq, "counts");
    enum customer_state state = STATE_ACTIVE;
    *ret = (struct customers_query){.held = str_eq(held, STR("1")), .counts = str_eq(counts, STR("1"))};
    const char *part = str_eq(status, STR("due")) ? "due" : str_eq(status, STR("erasing")) ? "erasing" : NULL;
    if (status.len && !part && state_parse(status, &state)) {
        reply_refuse(rq, 400, "INVALID_STATUS", "status is active, frozen, deleted, due or erasing.");
        return false;
    }
    if (held.len && !ret->held && !str_eq(held, STR("0"))) {
        reply_refuse(rq, 400, "INVALID_HELD", "held is 1 for customers under legal hold, or 0 for all.");
        return false;
    }
    if (counts.len && !ret->counts && !str_eq(counts, STR("0"))) {
        reply_refuse(rq, 400, "INVALID_COUNTS", "counts is 1 for the numbers by state, or 0.");
        return false;
    }
    enum err e = request_query_text(rq, "q", &text);
    if (e == ERR_MEMORY) {
        reply_fault(rq, e);
        return false;
    }
    if (e || text.len > CUSTOMERS_TEXT_MAX) {
        reply_refuse(rq, 400, "INVALID_QUERY", "q is the beginning of a name or address, or an id: up to 400 bytes.");
        return false;
    }
    ret->status = part ? part : status.len ? state_name(state) : NULL;
    ret->text = text.len ? text.at : NULL;
    return true;
}

void customers_list_handle(struct request *rq, const struct caller *caller, void *customers)
{
    (void)caller;
    struct customers *context = customers;
    struct customers_query query;
    struct list_page page;
    if (!query_read(rq, &query) || !list_page_read(rq, &page))
        return;
    struct pg_call call = {.ask = &customers_list,
                           .args = {pg_text_or_null(query.status), pg_text(query.held ? "true" : "false"),
                                    pg_text_or_null(query.text), pg_text_or_null(page.after), pg_i64(page.limit + 1)}};
    struct pg_call counts = {.ask = &customers_count, .args = {pg_text_or_null(query.text)}};
    if (query.counts) {
        page.extra_name = "counts";
        page.extra = &counts;
    }
    read_page(rq, customers_pool(context, LANE_BACKGROUND), &page, &call);
}
