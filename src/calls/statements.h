/* Private to src/calls: what is asked of the database about calls. */
#ifndef CALLS_STATEMENTS_H
#define CALLS_STATEMENTS_H

#include "pg/pg.h"

extern const struct statement calls_begin; /* $1 set-ups as JSON → as call_begin, and number */
extern const struct statement calls_hurry; /* for this transaction: whoever has to wait for a lock gives up */
extern const struct statement call_begin, call_lock, call_go_on, call_show, calls_list_all, calls_list_of;
extern const struct statement calls_mark_gone, calls_end, calls_ending;

#endif
