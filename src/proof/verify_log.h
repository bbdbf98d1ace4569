/* Recomputes the sealed log from the rows and compares it with its signed heads. What does not fit is reported one by one: a row that
 * was changed, removed or inserted, a leaf or head that was replaced. Rows that retention removed leave their leaves.
 *
 * Not covered: what was changed before it was sealed, some 10 seconds after its commit. */
#ifndef PROOF_VERIFY_LOG_H
#define PROOF_VERIFY_LOG_H

#include "proof/sealed_log.h"

struct log_verifier {
    struct pg *pg;
    const struct proof_keys *keys;
    int64_t retention_ms;
    int64_t (*deadline_ns)(void); /* of each statement */
    void (*found)(void *context, const char *finding);
    void *context;
    /* The result: */
    int64_t leaves, heads, findings;
    int64_t expired;       /* leaves whose rows retention removed */
    int64_t unsealed;      /* rows that are not sealed yet */
    int64_t gone_before_s; /* rows made before may have been removed by retention */
    struct proof_key_set set;
    char installation[INSTALLATION_ID_LEN + 1];
};

/* Fails only when the database does. */
enum err log_verify(struct log_verifier *v) MUST_CHECK;
void verify_report(struct log_verifier *v, const char *format, ...) PRINTF_LIKE(2, 3);
/* pg_trip() with at most four calls, in which names that are not qualified are those of PostgreSQL. */
enum err verify_ask(struct log_verifier *v, struct pg_call *calls, size_t count) MUST_CHECK;

extern const struct statement *const verify_log_statements[];
extern const size_t verify_log_statement_count;

#endif
