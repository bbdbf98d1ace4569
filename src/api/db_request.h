/* A request's work on a connection of the pool, then its answer:
 *
 *   struct freeze { struct db_request db; … };
 *   struct freeze *f = db_request_new(rq, sizeof *f, run, answer);
 *   if (f) { …; db_request_start(&f->db, pool); }
 */
#ifndef API_DB_REQUEST_H
#define API_DB_REQUEST_H

#include "http/request.h"
#include "pg/pool.h"

struct db_request { /* the first member of what runs */
    struct job job;
    struct request *rq;
    /* On a worker; run again from the top after ERR_CONFLICT, so it answers nothing. */
    enum err (*run)(struct db_request *db, struct pg *pg);
    /* After it succeeded; ends with reply_send. */
    void (*answer)(struct db_request *db);
};

/* From request_work(), zeroed; NULL after a 503 was sent. */
void *db_request_new(struct request *rq, size_t size, enum err (*run)(struct db_request *, struct pg *),
                     void (*answer)(struct db_request *)) MUST_CHECK;
/* The pool is NULL while the database is not ready: 503. */
void db_request_start(struct db_request *db, struct pool *pool);
/* The same with a deadline of its own. */
void db_request_start_by(struct db_request *db, struct pool *pool, int64_t deadline_ns);

/* The path's UUID, in lower case, into `ret`; false after a 400 was sent. */
bool request_id(struct request *rq, size_t param, char ret[37]);
/* Logs, then answers 503 when the database is away or a queue is full, otherwise 500. */
void reply_fault(struct request *rq, enum err e);

#endif
