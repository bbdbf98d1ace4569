/* How long to wait after failures in a row: doubles from the first pause to the longest. */
#ifndef BASE_BACKOFF_H
#define BASE_BACKOFF_H

#include <stdint.h>

struct backoff {
    int64_t first_ns, most_ns;
};

/* After so many failures; 0 after none. */
int64_t backoff_ns(struct backoff b, int failures);
/* The same, anywhere between half and one and a half of it, so that many instances do not retry at the same instant. */
int64_t backoff_jittered_ns(struct backoff b, int failures);
int backoff_jittered_ms(struct backoff b, int failures); /* for poll() */

#endif
