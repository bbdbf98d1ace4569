/* Private to src/customers: its statements. */
#ifndef CUSTOMERS_STATEMENTS_H
#define CUSTOMERS_STATEMENTS_H

#include "pg/pg.h"

/* Where mails about a customer go: to its own address, else to its owner's; '' for none. `u` is the owner in auth.users. A user
 * that is a customer may have changed its address since its row was made. As in reclaim.expiry_lock. */
#define CUSTOMER_ADDRESS                                                                                               \
    "pg_catalog.left(coalesce(CASE WHEN c.id = c.owner_user_id THEN u.email END, nullif(c.email, ''), u.email, "       \
    "'')::text, 1000)"

extern const struct statement customer_take_turn; /* $1 id: before its row, so that call set-ups do not starve it */
extern const struct statement
    customer_make_change; /* $1 id $2 change $3 actor $4 actor id $5 correlation $6 reason $7 language, or "" → outcome object */
extern const struct statement customer_make_row;     /* $1 id: of a user that is a customer without one → made */
extern const struct statement customers_sweep_notes; /* → swept */
extern const struct statement anonymise_read;        /* $1 id → status email */
extern const struct statement anonymise_clear;       /* $1 ids $2 sealed $3 owners → cleared */
extern const struct statement
    customer_write_log;                      /* $1 id $2 action $3 actor $4 actor id $5 outcome $6 correlation id */
extern const struct statement customer_show; /* $1 id → object */
/* $1 status or null, $2 held, $3 text or null, $4 after or null, $5 limit → id object */
extern const struct statement customers_list;
extern const struct statement customers_count;    /* $1 text or null → counts */
extern const struct statement customer_read_mail; /* $1 id → status email effective frozen_by language */
extern const struct statement
    customer_read_reminder; /* $1 id, $2 schedule → email effective expires_us frozen_by language */
extern const struct statement customers_prune_log;         /* $1 retention in ms */
extern const struct statement customers_prune_mails;       /* $1 retention in ms */
extern const struct statement customers_prune_freezes;     /* $1 more than 0 */
extern const struct statement customers_read_frozen_again; /* → customers */
/* $1 normalised address → id (null: unknown) hash may_sign_in second_factor (null: cannot be read) */
extern const struct statement login_find_user;
extern const struct statement login_find_proof; /* $1 user id → hash (null: without a password) email */
extern const struct statement own_session_read; /* $1 user id → email has_password now customers */

#endif
