/* What the bodies of both functions say, read strictly. Nothing else of a request is looked at. */
#ifndef RECOVERY_BODY_H
#define RECOVERY_BODY_H

#include "base/arena.h"
#include "recovery/codes.h"

struct body {
    char correlation_id[37]; /* "" when none was given; told even of a body that is malformed otherwise */
    struct str email;        /* normalised, in the arena */
    enum body_step { BODY_MALFORMED, BODY_REQUEST_CODE, BODY_VALIDATE } step;
    struct code code; /* what was typed, for BODY_VALIDATE */
};

/* {"email", "correlationId"?}. ERR_INPUT or ERR_MISSING for a malformed one. */
enum err body_read_probe(struct arena *arena, struct str text, struct body *ret) MUST_CHECK;
/* The same with "step" and, for the second one, "verificationCode". */
enum err body_read_cleanup(struct arena *arena, const struct code_shape *shape, struct str text,
                           struct body *ret) MUST_CHECK;

#endif
