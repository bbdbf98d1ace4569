/* Compares receipts, erasures and certificates with the facts that are sealed about them. */
#ifndef ERASURE_AUDIT_RECEIPTS_H
#define ERASURE_AUDIT_RECEIPTS_H

#include "proof/verify_log.h"

/* After log_verify(), which has found out whether the facts themselves are as they were sealed. */
enum err audit_receipts(struct log_verifier *v) MUST_CHECK;

extern const struct statement *const audit_receipts_statements[];
extern const size_t audit_receipts_statement_count;

#endif
