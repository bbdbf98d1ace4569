/* Compares the sealed log with a journal outside the database: heads that are in the journal and not in the database were removed,
 * with everything under them. Those that a restore lost are not missed, once a signed line of the journal or of the database says so. */
#ifndef ERASURE_AUDIT_JOURNAL_H
#define ERASURE_AUDIT_JOURNAL_H

#include "proof/verify_log.h"

/* After log_verify(). `ret_heads`: how many it compared. ERR_MISSING: there is no such folder. ERR_INPUT: it cannot be used. */
enum err audit_journal(struct log_verifier *v, const char *folder, int64_t *ret_heads, struct why *why) MUST_CHECK;

extern const struct statement *const audit_journal_statements[];
extern const size_t audit_journal_statement_count;

#endif
