/* Private to src/recovery: takes a code back whose mail could not be delivered. */
#ifndef RECOVERY_WITHDRAW_CODE_H
#define RECOVERY_WITHDRAW_CODE_H

#include "base/digest.h"
#include "pg/pool.h"

struct code_withdrawal { /* a member of what waits for it */
    char email_hash[DIGEST_HEX_LEN + 1];
    int64_t log_id;
    const char *correlation_id; /* for the log; NULL for none */
    void (*done)(struct code_withdrawal *withdrawal);
    struct job job;
};

/* On a worker: deletes the code and writes the failure into its row of the log. Then `done` is called, whether that worked
 * or not. */
void code_withdraw(struct code_withdrawal *withdrawal, struct pool *pool);

#endif
