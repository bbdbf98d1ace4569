/* Keeps the addresses of deleted customers from registering again for a while (RECLAIM_COOLDOWN). The database has hashes of them
 * under a key that it does not have; Supabase Auth asks before it creates a user (before_user_created_handle). */
#ifndef CUSTOMERS_COOLDOWN_H
#define CUSTOMERS_COOLDOWN_H

#include "base/buf.h"
#include "base/digest.h"
#include "pg/tx.h"

#define COOLDOWN_PURPOSE "cooldown" /* for digest_derive */

/* The addresses of customers that are deleted in one transaction; array literals. */
struct cooldown_batch {
    struct buf hashes, users;
    int count;
};
void cooldown_batch_cleanup(struct cooldown_batch *batch);

/* Before the deletion: reads and hashes the addresses. `customers` and `owners` are array literals; owners, of rows that are gone,
 * may be NULL. There are none where the installation has no cool-down. */
enum err cooldown_read(const struct digest *key, struct tx *tx, const char *customers, const char *owners,
                       struct cooldown_batch *ret) MUST_CHECK;
/* The call that begins the cool-down, for the same transaction, after the deletion. False when there is nothing to write. The batch
 * must outlive the trip. */
bool cooldown_write(const struct cooldown_batch *batch, struct pg_call *ret);

/* The hash of a normalised address, in hex. */
void cooldown_hash(const struct digest *key, struct str address, char ret[DIGEST_HEX_LEN + 1]);

/* Deletes what has ended. */
enum err cooldown_prune(struct pg *pg, int64_t deadline_ns) MUST_CHECK;

extern const struct statement cooldown_ask; /* $1 hash → cools */
extern const struct statement *const cooldown_statements[];
extern const size_t cooldown_statement_count;

#endif
