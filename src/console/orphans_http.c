/* GET /v1/orphans and GET /v1/participants. */
#include "api/db_request.h"
#include "api/read.h"
#include "console/statements.h"
#include "erasure/cascade.h"

void orphans_handle(struct request *rq, const struct caller *caller, void *console)
{
    (void)caller;
    struct console *c = console;
    struct str age = request_query(rq, "older_than");
    int64_t age_ms = 0;
    struct list_page page;
    if (age.len && str_to_duration_ms(age, &age_ms)) {
        reply_refuse(rq, 400, "INVALID_AGE", "older_than is a duration such as 12h or 7d.");
        return;
    }
    if (!list_page_read(rq, &page))
        return;
    struct pg_call call = {.ask = &c->orphans->report,
                           .args = {pg_i64(age_ms / 1000), pg_text_or_null(page.after), pg_i64(page.limit + 1)}};
    read_page(rq, atomic_load(&c->pool), &page, &call);
}

void participants_handle(struct request *rq, const struct caller *caller, void *console)
{
    (void)caller;
    struct console *c = console;
    struct pg_call call = {.ask = &cascade_overview};
    read_object(rq, atomic_load(&c->pool), &call, "NOT_FOUND", "There is nothing at this address.");
}
