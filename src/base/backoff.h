/* Exponential back-off: the pause doubles with each consecutive failure, up to a maximum. */
#ifndef BASE_BACKOFF_H
#define BASE_BACKOFF_H

#include <stdint.h>

struct backoff {
    int64_t first_ns, most_ns;
};

/* The pause after this many consecutive failures; 0 when there was none. */
int64_t backoff_ns(struct backoff b, int failures);
/* The same with jitter, between 0.5 and 1.5 times the pause, so that instances do not retry at the same time. */
int64_t backoff_jittered_ns(struct backoff b, int failures);
int backoff_jittered_ms(struct backoff b, int failures); /* for poll() */

#endif
