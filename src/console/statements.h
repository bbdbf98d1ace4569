/* Private to src/console: statements that its handlers share, and the audit of what operators do. */
#ifndef CONSOLE_STATEMENTS_H
#define CONSOLE_STATEMENTS_H

#include "console/console.h"

extern const struct statement audit_read, audit_kind_read, timeline_read, dead_read, console_log, console_session_begin,
    console_session_show, console_session_end, sessions_prune_old;

/* An audit row; `customer_id` and `detail` may be NULL. Texts must live until the trip. */
struct pg_call console_audit(const struct request *rq, const struct caller *caller, const char *customer_id,
                             const char *action, const char *detail);

#endif
