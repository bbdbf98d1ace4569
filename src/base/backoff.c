#include "base/backoff.h"

#include "base/clock.h"
#include "base/random.h"

int64_t backoff_ns(struct backoff b, int failures)
{
    if (failures <= 0)
        return 0;
    int64_t pause_ns = b.first_ns < b.most_ns ? b.first_ns : b.most_ns;
    for (int i = 1; i < failures && pause_ns < b.most_ns; i++)
        pause_ns = pause_ns < b.most_ns / 2 ? pause_ns * 2 : b.most_ns;
    return pause_ns;
}

int64_t backoff_jittered_ns(struct backoff b, int failures)
{
    int64_t pause_ns = backoff_ns(b, failures);
    return pause_ns / 2 + (int64_t)(random_unit() * (double)pause_ns);
}

int backoff_jittered_ms(struct backoff b, int failures)
{
    return (int)(backoff_jittered_ns(b, failures) / NS_PER_MS);
}
