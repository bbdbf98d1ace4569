/* What the operators' console shows: figures, the audit, limits, orphans, dead letters, participants, one customer's timeline. The pages
 * are made from these answers alone. */
#ifndef CONSOLE_CONSOLE_H
#define CONSOLE_CONSOLE_H

#include "console/instance.h"
#include "console/rates.h"
#include "gate/authenticate.h"
#include "limits/admission.h"
#include "recovery/orphans.h"

struct console {
    struct authenticator *authenticator;
    struct admission *admission;
    const struct digest *identifier_key; /* hashes addresses and clients for limits and the audit */
    const struct orphan_statements *orphans;
    _Atomic int64_t deadline_ms;  /* RECLAIM_CASCADE_DEADLINE */
    _Atomic(struct pool *) pool;  /* NULL until the database is ready */
    struct rates rates, refusals; /* requests answered, and refused by limits */
    struct instance instance;
};

/* Every second, on one thread: samples the requests answered so far and records this instance, both every ten seconds. */
void console_watch(struct console *c, unsigned long long answered, bool leads);

/* Behind authenticate_guarded: */
void stats_handle(struct request *rq, const struct caller *caller, void *console);        /* GET /v1/stats */
void audit_handle(struct request *rq, const struct caller *caller, void *console);        /* GET /v1/audit */
void timeline_handle(struct request *rq, const struct caller *caller, void *console);     /* GET …/{id}/timeline */
void limits_show_handle(struct request *rq, const struct caller *caller, void *console);  /* GET /v1/limits/{key} */
void limits_reset_handle(struct request *rq, const struct caller *caller, void *console); /* DELETE */
void orphans_handle(struct request *rq, const struct caller *caller, void *console);      /* GET /v1/orphans */
void dead_letters_handle(struct request *rq, const struct caller *caller, void *console); /* GET /v1/events/dead */
void dead_redrive_handle(struct request *rq, const struct caller *caller, void *console); /* POST …/{id}/redrive */
void participants_handle(struct request *rq, const struct caller *caller, void *console); /* GET /v1/participants */

void session_begin_handle(struct request *rq, const struct caller *caller,
                          void *console); /* POST /v1/console/sessions */
void session_show_handle(struct request *rq, const struct caller *caller, void *console); /* GET …/sessions/{id} */
void session_end_handle(struct request *rq, const struct caller *caller, void *console);  /* DELETE …/sessions/{id} */
void sessions_end_handle(struct request *rq, const struct caller *caller, void *console); /* DELETE …/sessions */
void reveal_handle(struct request *rq, const struct caller *caller, void *console);       /* POST /v1/console/reveals */

/* For the leader: deletes sessions that ended over a day ago. */
enum err console_sessions_prune(struct pg *pg, int64_t deadline_ns) MUST_CHECK;

extern const struct statement *const console_statements[];
extern const size_t console_statement_count;

#endif
