/* Checks passwords against the hashes that Supabase Auth stores: bcrypt, and Argon2 in accounts that were imported. */
#ifndef CREDENTIALS_PASSWORDS_H
#define CREDENTIALS_PASSWORDS_H

#include "base/str.h"

#define PASSWORD_HASH_MAX 255

/* Each step of bcrypt's cost doubles the time; with higher costs, a few log-ins could keep every worker busy. */
#define PASSWORD_COST_MAX 14
/* The most that an Argon2 hash may ask for. */
#define PASSWORD_ARGON2_KIB_MAX 262144
#define PASSWORD_ARGON2_PASSES_MAX 10
#define PASSWORD_ARGON2_LANES_MAX 16

/* A hash of an unknown password, at the cost of most stored ones: what is checked where there is no usable hash, so that
 * the time does not reveal it. */
struct password_decoy {
    char hash[PASSWORD_HASH_MAX + 1];
};
extern const struct password_decoy password_decoy_usual; /* bcrypt at the cost that Supabase Auth uses */
/* `beginning` is a hash up to its salt: "$2a$10$" or "$argon2id$v=19$m=65536,t=2,p=1$". ERR_INPUT if password_check() would
 * not check such a hash. */
enum err password_decoy_like(struct str beginning, struct password_decoy *ret) MUST_CHECK;

struct password_verdict {
    bool matches;
    bool unsupported; /* there is a hash, of a kind or cost that is not checked */
};

/* A missing or empty hash and an unsupported one take as long as the decoy, and do not match. Supported are bcrypt ($2a$,
 * $2b$, $2y$), Argon2id and Argon2i of version 19, within the bounds above. Takes some 60 ms of a core for bcrypt at cost
 * 10: for worker threads, with a rate limit. On ERR_MEMORY and ERR_SYSTEM *ret is not set.
 *
 * bcrypt uses the first 72 bytes of a password, as in Supabase Auth. Passwords that are empty or contain NUL never
 * match. */
enum err password_check(struct str password, struct str hash, const struct password_decoy *decoy,
                        struct password_verdict *ret) MUST_CHECK;

#endif
