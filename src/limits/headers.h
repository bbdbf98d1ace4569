/* The rate-limit headers of a reply: X-RateLimit-*, Retry-After, and the IETF's RateLimit-Policy and RateLimit. */
#ifndef LIMITS_HEADERS_H
#define LIMITS_HEADERS_H

#include "http/request.h"
#include "limits/admission.h"

/* Nothing when the counts are not known: without a tier, or after a fault. */
void limit_headers(struct request *rq, const struct ticket *t);
/* Retry-After alone, for a refusal that must not tell what others did. */
void limit_retry_header(struct request *rq, const struct ticket *t);
/* Retry-After in whole seconds: rounded up, at least 1, sufficient for every tier that refused, and at most the longest
 * of their windows. */
int64_t limit_retry_after_s(const struct ticket *t);
/* "45 seconds", "60 seconds", "20 minutes": in seconds up to a minute, then in minutes, rounded up. */
struct str limit_wait_text(struct arena *arena, int64_t seconds);

#endif
