/* Constant-time release: when an answer may leave depends on when its request had arrived, not on how long the work took. */
#ifndef HTTP_HOLD_H
#define HTTP_HOLD_H

#include <stdatomic.h>
#include <stdint.h>

/* May be changed while requests are under way; those keep what they drew. */
struct hold_rule {
    _Atomic int64_t hold_ms; /* 0: answers leave when they are ready */
    _Atomic int64_t sigma_ms;
};

struct hold {
    int64_t until_ns; /* 0: none */
    int64_t step_ns;
};

/* Draws the instant for a request whose last byte came at arrived_ns: hold plus Gaussian jitter, cut at two sigma. */
struct hold hold_draw(const struct hold_rule *rule, int64_t arrived_ns);
/* When an answer that is ready now leaves: at the instant drawn, or, when that has passed, whole holds later, so that
 * lateness tells no more than how many holds the work took. */
int64_t hold_release_ns(const struct hold *hold, int64_t ready_ns);

#endif
