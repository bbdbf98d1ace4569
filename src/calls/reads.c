/* GET /v1/calls and /v1/calls/{id}. */
#include "api/db_request.h"
#include "api/read.h"
#include "calls/calls.h"
#include "calls/statements.h"

void call_show_handle(struct request *rq, const struct caller *caller, void *calls)
{
    (void)caller;
    struct calls *context = calls;
    char id[37];
    if (request_id(rq, 0, id))
        read_one(rq, atomic_load(&context->pool), &call_show, id, "CALL_NOT_FOUND", "There is no call with this id.");
}

void calls_list_handle(struct request *rq, const struct caller *caller, void *calls)
{
    (void)caller;
    struct calls *context = calls;
    struct str customer = request_query(rq, "customer_id");
    struct list_page page;
    if (customer.at && !str_is_uuid(customer)) {
        reply_refuse(rq, 400, "INVALID_ID", "customer_id must be a UUID.");
        return;
    }
    if (!list_page_read(rq, &page))
        return;
    struct pg_call call = {.ask = customer.at ? &calls_list_of : &calls_list_all,
                           .args = {pg_text(page.after ? page.after : UUID_NIL), pg_i64(page.limit + 1),
                                    customer.at ? pg_text(arena_copy(rq->arena, customer).at) : pg_null()}};
    read_page(rq, atomic_load(&context->pool), &page, &call);
}
