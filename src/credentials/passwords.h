/* Checks passwords against Supabase Auth's bcrypt hashes. */
#ifndef CREDENTIALS_PASSWORDS_H
#define CREDENTIALS_PASSWORDS_H

#include "base/str.h"

/* A missing or empty hash, one that is not bcrypt ($2a$, $2b$ or $2y$), and one with a cost above PASSWORD_COST_MAX
 * take as long as a wrong password and do not match, so that the time does not reveal them. Takes some 60 ms of a core
 * at cost 10: for worker threads, with a rate limit. On ERR_MEMORY and ERR_SYSTEM *ret_matches is not set.
 *
 * bcrypt uses the first 72 bytes of a password, as in Supabase Auth. Passwords that are empty or contain NUL never
 * match. */
enum err password_check(struct str password, struct str hash, bool *ret_matches) MUST_CHECK;

/* Each step doubles the time; with higher costs, a few log-ins could keep every worker busy. */
#define PASSWORD_COST_MAX 14

#endif
