/* Passwords against what Supabase Auth stores of them: bcrypt. */
#ifndef CREDENTIALS_PASSWORDS_H
#define CREDENTIALS_PASSWORDS_H

#include "base/str.h"

/* Whether the password is the one behind the hash. Takes as long for no hash at all (absent or empty), for one that is
 * not bcrypt's ($2a$, $2b$ or $2y$) and for one whose cost is above PASSWORD_COST_MAX: none of these matches, and none
 * can be told from a wrong password. Some 60 ms of a core at cost 10: for worker threads, behind a limit. ERR_MEMORY
 * and ERR_SYSTEM say nothing about the password.
 *
 * bcrypt sees the first 72 bytes of a password, as it does in Supabase Auth. An empty one, and one with a NUL, match
 * nothing. */
enum err password_check(struct str password, struct str hash, bool *ret_matches) MUST_CHECK;

/* Each step doubles the time; beyond this one, rows of the database could keep every worker busy. */
#define PASSWORD_COST_MAX 14

#endif
