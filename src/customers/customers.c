#include "customers/customers.h"

#include "auth/verifier.h"
#include "base/clock.h"
#include "customers/statements.h"

#define VERIFIER_THREADS 2

enum err customers_open(struct customers *room, struct pool *pool, struct engine *engine)
{
    room->engine = engine;
    if (!(room->verifier = verifier_start(VERIFIER_THREADS, NULL)))
        return ERR_MEMORY;
    atomic_store(&room->pool, pool);
    return OK;
}

void customers_close(struct customers *room)
{
    verifier_stop(room->verifier);
    room->verifier = NULL;
}

struct actor actor_of(struct request *rq, const struct caller *caller)
{
    const char *id = caller->by_key ? caller->key_id : caller->user_id;
    return (struct actor){.kind = caller->by_key  ? "key"
                                  : caller->admin ? "admin"
                                                  : "owner",
                          .id = *id ? id : NULL,
                          .correlation_id = rq->correlation_id};
}

struct change_needs customers_needs(struct customers *room)
{
    return (struct change_needs){.post = room->post, .engine = room->engine, .hangup = room->hangup};
}

enum err customers_prune(struct pg *pg, int64_t retention_ms, int64_t deadline_ns)
{
    for (;;) {
        struct pg_call call = {.ask = &customers_prune_log, .args = {pg_i64(retention_ms)}};
        enum err e = pg_ask(pg, &call, deadline_ns);
        if (e || call.rows == 0)
            return e;
    }
}
