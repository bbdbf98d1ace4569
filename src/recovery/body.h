/* The bodies of requests to both functions, read strictly. */
#ifndef RECOVERY_BODY_H
#define RECOVERY_BODY_H

#include "base/arena.h"
#include "credentials/codes.h"

struct body {
    char correlation_id[37]; /* "" when none was given; kept even when the rest is malformed */
    struct str email;        /* normalised, in the arena */
    enum body_step { BODY_MALFORMED, BODY_REQUEST_CODE, BODY_VALIDATE } step;
    struct code code; /* as typed, for BODY_VALIDATE */
};

/* {"email", "correlationId"?}. Fails for a malformed one. */
enum err body_read_probe(struct arena *arena, struct str text, struct body *ret) MUST_CHECK;
/* The same with "step" and, for the second one, "verificationCode". */
enum err body_read_cleanup(struct arena *arena, const struct code_shape *shape, struct str text,
                           struct body *ret) MUST_CHECK;

#endif
