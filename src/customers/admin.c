/* What admins may do to any customer, and what a customer may see of itself. */
#include <string.h>

#include "auth/look.h"
#include "customers/changing.h"
#include "customers/statements.h"

static void change_named(struct request *rq, const struct caller *caller, struct customers *room,
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
    change_over_http(rq, room, id, event, &actor);
}

void customer_freeze_handle(struct request *rq, const struct caller *caller, void *customers)
{
    change_named(rq, caller, customers, EVENT_FREEZE);
}

void customer_recover_handle(struct request *rq, const struct caller *caller, void *customers)
{
    change_named(rq, caller, customers, EVENT_RECOVER);
}

void customer_show_handle(struct request *rq, const struct caller *caller, void *customers)
{
    struct customers *room = customers;
    char id[37];
    if (!request_id(rq, 0, id))
        return;
    if (caller->admin || strcmp(id, caller->customer_id) == 0)
        look_one(rq, atomic_load(&room->pool), &customer_show, id, "CUSTOMER_NOT_FOUND",
                 "There is no customer with this id.");
    else if (caller->standing == CUSTOMER_FROZEN)
        who_refuse_frozen(room->who, rq, caller);
    else
        reply_refuse(rq, 403, "FORBIDDEN", "These credentials may not see this customer.");
}

void customers_list_handle(struct request *rq, const struct caller *caller, void *customers)
{
    (void)caller;
    struct customers *room = customers;
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
    look_page(rq, atomic_load(&room->pool), &page, &call);
}
