/* Private to src/recovery: the statements of the clean-up's two steps. */
#ifndef RECOVERY_STATEMENTS_H
#define RECOVERY_STATEMENTS_H

#include "pg/pg.h"

extern const struct statement cleanup_lock;       /* $1 address; fails unless it is granted */
extern const struct statement cleanup_await_lock; /* the same, waiting for it */
extern const struct statement cleanup_find_code;  /* $1 email hash, $2 log id → log_id:int8 */
extern const struct statement cleanup_lock_user;  /* $1 user id → id:uuid */
extern const struct statement cleanup_try_locks;  /* $1 addresses → mine:bool, one for each, in order */
/* $1 [{"email_hash","user_id","code_hash","code_salt","correlation_id","ip_hash"}], $2 life in seconds
 * → email_hash:text log_id:int8 expires_at:text */
extern const struct statement cleanup_store_codes;
/* $1 email hash, $2 user id, $3 code hash, $4 salt, $5 correlation id, $6 step, $7 reason → log_id:int8 created_at:text */
extern const struct statement cleanup_store_operator;
extern const struct statement
    cleanup_find_address; /* $1 user id → email:varchar; none that the clean-up knows: no row */
/* $1 email hash, $2 network's hash, $3 tries of the code → code_hash code_salt user_id log_id created_at */
extern const struct statement cleanup_take_try;
extern const struct statement cleanup_restore_try; /* $1 email hash, $2 log id, $3 network's hash */
extern const struct statement cleanup_drop_code;   /* $1 email hash, $2 log id */
extern const struct statement cleanup_delete_user; /* $1 user id */
extern const struct statement cleanup_tell_gates;  /* $1 user id, deleted by this transaction */
extern const struct statement cleanup_check_keys;  /* checks deferred keys now */
extern const struct statement cleanup_read_mail;   /* $1 user id, $2 salt, $3 request → email:varchar left_s:int8 */

#endif
