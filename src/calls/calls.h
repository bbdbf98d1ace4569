/* Calls over HTTP: the switch asks at set-up whether a customer may call, and reports how each call goes on. */
#ifndef CALLS_CALLS_H
#define CALLS_CALLS_H

#include "gate/authenticate.h"
#include "pg/batch.h"

struct calls {
    struct authenticator *authenticator; /* writes the refusal of a frozen customer */
    _Atomic(struct pool *) pool;         /* NULL until the database is ready */
    _Atomic(struct batch *) set_ups;     /* batches those that arrive together */
};

/* The database is ready. */
enum err calls_open(struct calls *context, struct pool *pool) MUST_CHECK;
void calls_close(struct calls *context); /* after the last request */

/* Behind authenticate_guarded, for admins: */
void call_begin_handle(struct request *rq, const struct caller *caller, void *calls);    /* POST /v1/calls */
void call_progress_handle(struct request *rq, const struct caller *caller, void *calls); /* POST …/{id}/progress */
void call_hangup_handle(struct request *rq, const struct caller *caller, void *calls);   /* POST …/{id}/hangup */
void call_show_handle(struct request *rq, const struct caller *caller, void *calls);     /* GET …/{id} */
void calls_list_handle(struct request *rq, const struct caller *caller, void *calls);    /* GET /v1/calls */

extern const struct statement *const calls_statements[];
extern const size_t calls_statement_count;

#endif
