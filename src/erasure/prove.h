/* Proves erasures: once the last receipt is there the leader writes the certificate, seals it together with all new facts, and only
 * then the erasure is complete. Part of the cascade's shift, and every 10 seconds for facts alone. */
#ifndef ERASURE_PROVE_H
#define ERASURE_PROVE_H

#include "proof/sealed_log.h"
#include "work/shift.h"

struct prover {
    struct sealed_log_terms log;
    _Atomic int64_t backup_retention_ms;
    /* Used by prover_run(): */
    int64_t seal_ns; /* when facts alone are sealed next */
};

enum err prover_run(struct prover *prover, struct pg *pg, struct shift *shift);

extern const struct statement *const prove_statements[];
extern const size_t prove_statement_count;

#endif
