/* Constant-time replies: when a reply is sent depends on when its request arrived, not on how long the work took. */
#ifndef HTTP_HOLD_H
#define HTTP_HOLD_H

#include <stdatomic.h>
#include <stdint.h>

/* May be changed at any time; requests that have arrived keep the time drawn for them. */
struct hold_rule {
    _Atomic int64_t hold_ms; /* 0: replies are sent when they are ready */
    _Atomic int64_t sigma_ms;
};

struct hold {
    int64_t until_ns; /* 0: none */
    int64_t step_ns;
};

/* Draws the release time of a request whose last byte came at arrived_ns: hold plus Gaussian jitter up to two sigma. */
struct hold hold_draw(const struct hold_rule *rule, int64_t arrived_ns);
/* When a reply that is ready now is sent: at the time drawn or, when that has passed, a multiple of the hold later, so
 * that a late reply reveals only how many holds the work took. */
int64_t hold_release_ns(const struct hold *hold, int64_t ready_ns);

#endif
