/* Proves erasures, in a shift of its own, since a table that is locked may delay the eraser. Once a customer is deleted its line is committed, then written to the journal; once
 * the last receipt is there too the leader writes the certificate and seals it together with all new facts; once the head of the
 * sealed log is in the journal as well, the erasure is complete. Facts alone are sealed every 10 seconds. */
#ifndef ERASURE_PROVE_H
#define ERASURE_PROVE_H

#include "erasure/journal_keeper.h"
#include "proof/sealed_log.h"
#include "work/shift.h"

struct prover {
    struct sealed_log_terms log;
    struct keeper *keeper;
    _Atomic int64_t backup_retention_ms;
    /* Used by prover_run(): */
    int64_t seal_ns; /* when facts alone are sealed next */
    int64_t all_ns;  /* when rows before the last one sealed are looked at next */
    struct sealed_up_to up_to;
    bool logged;    /* that the journal cannot be written */
    bool too_large; /* logged that a ledger is too long */
};

/* shift_config.run; `prover` is a struct prover. */
enum err prover_run(void *prover, struct pg *pg, struct shift *shift);

extern const struct statement *const prove_statements[];
extern const size_t prove_statement_count;

#endif
