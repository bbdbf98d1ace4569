/* The bodies of requests to both functions, read strictly. */
#ifndef RECOVERY_BODY_H
#define RECOVERY_BODY_H

#include "base/arena.h"
#include "credentials/codes.h"

/* What is wrong with a body: a field of it, or "body" itself, and a sentence that repeats nothing of the caller's. */
struct body_problem {
    const char *field, *message;
};
#define BODY_PROBLEMS_MAX 4
struct body_problems {
    struct body_problem at[BODY_PROBLEMS_MAX];
    size_t count;
};

struct body {
    char correlation_id[37]; /* "" when none was given; kept even when the rest is malformed */
    struct str email;        /* normalised, in the arena */
    enum body_step { BODY_MALFORMED, BODY_REQUEST_CODE, BODY_VALIDATE } step;
    struct code code;              /* as typed, for BODY_VALIDATE */
    struct body_problems problems; /* of a malformed one; their memory is the arena's */
};

/* {"email", "correlationId"?}. Fails for a malformed one. */
enum err body_read_probe(struct arena *arena, struct str text, struct body *ret) MUST_CHECK;
/* The same with "step" and, for the second one, "verificationCode". */
enum err body_read_cleanup(struct arena *arena, const struct code_shape *shape, struct str text,
                           struct body *ret) MUST_CHECK;

#endif
