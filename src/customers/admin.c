/* Freezing, recovering and reading customers, by admins; and what a customer may read of itself. */
#include <string.h>

#include "api/read.h"
#include "customers/freeze_http.h"
#include "customers/statements.h"

static void change_named(struct request *rq, const struct caller *caller, struct customers *context,
                         enum customer_event event)
{
    char *id = request_work(rq, 37);
    if (!id) {
        reply_fault(rq, ERR_FULL);
        return;
    }
    if (!request_id(rq, 0, id))
        return;
    struct actor actor = actor_of(rq, caller);
    change_over_http(rq, context, id, event, &actor);
}

void customer_freeze_handle(struct request *rq, const struct caller *caller, void *customers)
{
    change_named(rq, caller, customers, CUSTOMER_FREEZES);
}

void customer_recover_handle(struct request *rq, const struct caller *caller, void *customers)
{
    change_named(rq, caller, customers, CUSTOMER_RECOVERS);
}

void customer_show_handle(struct request *rq, const struct caller *caller, void *customers)
{
    struct customers *context = customers;
    char id[37];
    if (!request_id(rq, 0, id))
        return;
    if (caller->admin || strcmp(id, caller->customer_id) == 0)
        read_one(rq, atomic_load(&context->pool), &customer_show, id, "CUSTOMER_NOT_FOUND",
                 "There is no customer with this id.");
    else if (caller->standing == STANDING_FROZEN)
        authenticator_refuse_frozen(context->authenticator, rq, caller);
    else
        reply_refuse(rq, 403, "FORBIDDEN", "These credentials may not see this customer.");
}

void customers_list_handle(struct request *rq, const struct caller *caller, void *customers)
{
    (void)caller;
    struct customers *context = customers;
    struct str status = request_query(rq, "status");
    enum customer_state state = STATE_ACTIVE;
    struct page page;
    if (status.len && state_parse(status, &state)) {
        reply_refuse(rq, 400, "INVALID_STATUS", "status is active, frozen or deleted.");
        return;
    }
    if (!page_read(rq, &page))
        return;
    struct pg_call call = {.ask = &customers_list,
                           .args = {status.len ? pg_text(state_name(state)) : pg_null(),
                                    page.after ? pg_text(page.after) : pg_null(), pg_i64(page.limit + 1)}};
    read_page(rq, atomic_load(&context->pool), &page, &call);
}
