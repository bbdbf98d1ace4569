/* Private to src/customers: its statements. */
#ifndef CUSTOMERS_STATEMENTS_H
#define CUSTOMERS_STATEMENTS_H

#include "pg/pg.h"

extern const struct statement
    customer_take_turn;                         /* $1 id: before customer_lock, so that call set-ups do not starve it */
extern const struct statement customer_lock;    /* $1 id → status object email */
extern const struct statement customer_freeze;  /* $1 id → object */
extern const struct statement customer_recover; /* $1 id → object */
extern const struct statement customer_publish; /* $1 id, $2 type */
extern const struct statement customer_set_billing_hold;   /* $1 id */
extern const struct statement customer_clear_billing_hold; /* $1 id */
extern const struct statement
    customer_write_log;                       /* $1 id $2 action $3 actor $4 actor id $5 outcome $6 correlation id */
extern const struct statement customers_list; /* $1 status or null, $2 after or null, $3 limit → id object */
extern const struct statement customer_read_mail; /* $1 id, $2 grace in ms → status email effective */
extern const struct statement
    customer_read_reminder; /* $1 id, $2 grace in ms, $3 schedule → email effective expires_us */
extern const struct statement customers_prune_log; /* $1 retention in ms */
/* $1 normalised address → id (null: unknown) hash may_sign_in second_factor (null: cannot be read) */
extern const struct statement login_find_user;
extern const struct statement login_find_proof; /* $1 user id → hash (null: the phrase is the proof) */

#endif
