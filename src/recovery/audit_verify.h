/* Compares reclaim.auth_cleanup_log, whose rows change until they are completed or failed, with the events that tell of each change
 * and are sealed. */
#ifndef RECOVERY_AUDIT_VERIFY_H
#define RECOVERY_AUDIT_VERIFY_H

#include "proof/verify_log.h"

/* After log_verify(). */
enum err audit_verify(struct log_verifier *v) MUST_CHECK;

extern const struct statement *const audit_verify_statements[];
extern const size_t audit_verify_statement_count;

#endif
