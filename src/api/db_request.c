#include "api/db_request.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "http/router.h"

#define DB_REQUEST_NS (30 * NS_PER_S)

void reply_fault(struct request *rq, enum err e)
{
    bool away = e == ERR_CLOSED || e == ERR_TIMEOUT || e == ERR_FULL;
    log_warn("request failed", F_STR("route", rq->route->path), F_STR("error", err_name(e)));
    if (away)
        reply_refuse(rq, 503, "UNAVAILABLE", "Reclaim cannot answer right now. Please try again in a moment.");
    else
        reply_refuse(rq, 500, "INTERNAL", "Something went wrong on our side; nothing was changed. Please try again.");
}

static enum err run(struct job *job, struct pg *pg)
{
    struct db_request *db = OWNER_OF(job, struct db_request, job);
    return db->run(db, pg);
}

static void done(struct job *job, enum err e)
{
    struct db_request *db = OWNER_OF(job, struct db_request, job);
    if (e)
        reply_fault(db->rq, e);
    else
        db->answer(db);
}

void *db_request_new(struct request *rq, size_t size, enum err (*work)(struct db_request *, struct pg *),
                     void (*answer)(struct db_request *))
{
    struct db_request *db = request_work(rq, size);
    if (!db) {
        reply_fault(rq, ERR_FULL);
        return NULL;
    }
    db->rq = rq;
    db->run = work;
    db->answer = answer;
    return db;
}

void db_request_start_by(struct db_request *db, struct pool *pool, int64_t deadline_ns)
{
    struct request *rq = db->rq;
    db->job = (struct job){run, done, deadline_ns, rq->correlation_id};
    enum err e = pool ? pool_submit(pool, &db->job) : ERR_CLOSED;
    if (e)
        reply_fault(rq, e);
}

void db_request_start(struct db_request *db, struct pool *pool)
{
    db_request_start_by(db, pool, db->rq->arrived_ns + DB_REQUEST_NS);
}

bool request_id(struct request *rq, size_t param, char ret[37])
{
    if (!str_is_uuid(rq->params[param])) {
        reply_refuse(rq, 400, "INVALID_ID", "The id in the address is not a UUID.");
        return false;
    }
    memcpy(ret, rq->params[param].at, 36);
    ret[36] = 0;
    str_lower(ret, 36);
    return true;
}
