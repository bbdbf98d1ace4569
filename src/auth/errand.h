/* A request's work on a connection of the pool, then its answer:
 *
 *   struct freeze { struct errand errand; … };
 *   struct freeze *f = errand_new(rq, sizeof *f, run, answer);
 *   if (f) { …; errand_go(&f->errand, pool); }
 */
#ifndef AUTH_ERRAND_H
#define AUTH_ERRAND_H

#include "http/request.h"
#include "pg/pool.h"

struct errand { /* the first member of what is run */
    struct job job;
    struct request *rq;
    /* On a worker; run again from the top after ERR_CONFLICT, so it answers nothing. */
    enum err (*run)(struct errand *errand, struct pg *pg);
    /* After it went well; ends with reply_send. */
    void (*answer)(struct errand *errand);
};

/* Of the request's work, zeroed; NULL after a 503 was sent. */
void *errand_new(struct request *rq, size_t size, enum err (*run)(struct errand *, struct pg *),
                 void (*answer)(struct errand *)) MUST_CHECK;
/* A pool that is NULL is a database that is not ready yet. */
void errand_go(struct errand *errand, struct pool *pool);

/* The path's UUID, in lower case, into `ret`; false after a 400 was sent. */
bool request_id(struct request *rq, size_t param, char ret[37]);
/* 503 for a database that is not there, 500 for what should not happen; logs. */
void reply_fault(struct request *rq, enum err e);

#endif
