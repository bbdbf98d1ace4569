/* Private to src/calls: its statements. */
#ifndef CALLS_STATEMENTS_H
#define CALLS_STATEMENTS_H

#include "pg/pg.h"

extern const struct statement calls_begin;           /* $1 set-ups as JSON → as call_begin, and number */
extern const struct statement calls_limit_lock_wait; /* this transaction fails when it has to wait for a lock */
extern const struct statement call_begin, call_lock, call_change_status, call_show, calls_list_all, calls_list_of;
extern const struct statement calls_mark_gone, calls_end, calls_end_many, calls_ending, calls_elsewhere;
extern const struct statement hangup_hand_over;

#endif
