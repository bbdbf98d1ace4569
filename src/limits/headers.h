/* What a caller is told about limits: X-RateLimit-*, Retry-After, and the IETF's RateLimit-Policy and RateLimit. */
#ifndef LIMITS_HEADERS_H
#define LIMITS_HEADERS_H

#include "http/request.h"
#include "limits/admission.h"

void limit_headers(struct request *rq, const struct ticket *t);
/* Whole seconds a refused caller is to wait: rounded up, at least 1, and enough for every tier that refused. */
int64_t limit_retry_after_s(const struct ticket *t);
/* "45 seconds", "1 minute", "20 minutes". */
struct str limit_wait_text(struct arena *arena, int64_t seconds);

#endif
