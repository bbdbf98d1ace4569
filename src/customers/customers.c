#include "customers/customers.h"

#include "base/clock.h"
#include "credentials/verifier.h"
#include "customers/statements.h"

#define VERIFIER_THREADS 2

enum err customers_open(struct customers *context, struct lanes *lanes, struct engine *engine)
{
    context->engine = engine;
    if (!(context->verifier = verifier_start(VERIFIER_THREADS, NULL)))
        return ERR_MEMORY;
    atomic_store(&context->lanes, lanes);
    return OK;
}

void customers_close(struct customers *context)
{
    verifier_stop(context->verifier);
    context->verifier = NULL;
}

struct pool *customers_pool(struct customers *context, enum lane lane)
{
    return lanes_pool(atomic_load(&context->lanes), lane);
}

struct actor actor_of(struct request *rq, const struct caller *caller)
{
    const char *id = caller->by_key ? caller->key_id : caller->user_id;
    enum language language;
    bool speaks = !caller->admin && !language_asked(rq->accept_language, &language);
    return (struct actor){.kind = caller->admin    ? "admin"
                                  : caller->by_key ? "key"
                                                   : "owner",
                          .id = *id ? id : NULL,
                          .correlation_id = rq->correlation_id,
                          .language = speaks ? language_tag(language) : NULL};
}

struct deletion_terms customers_deletion_terms(const struct customers *context)
{
    bool mails = context->post && post_has_provider(context->post);
    return (struct deletion_terms){mails ? context->last_mail_key : NULL, context->cooldown_key};
}

enum err customers_prune(struct pg *pg, int64_t retention_ms, int64_t deadline_ns)
{
    static const struct statement *const batches[] = {&customers_prune_log, &customers_prune_mails,
                                                      &customers_prune_freezes};
    enum err e = OK;
    for (size_t i = 0; !e && i < COUNT_OF(batches); i++)
        for (int rows = 1; !e && rows > 0;) {
            struct pg_call call = {.ask = batches[i], .args = {pg_i64(retention_ms)}};
            e = pg_ask(pg, &call, deadline_ns);
            rows = call.rows;
        }
    return e;
}
