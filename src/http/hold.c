#include "http/hold.h"

#include "base/clock.h"
#include "base/random.h"

struct hold hold_draw(const struct hold_rule *rule, int64_t arrived_ns)
{
    int64_t hold_ms = rule ? atomic_load(&rule->hold_ms) : 0;
    if (hold_ms == 0)
        return (struct hold){0, 0};

    double jitter_ms = random_gauss((double)atomic_load(&rule->sigma_ms), 2);
    int64_t wait_ns = hold_ms * NS_PER_MS + (int64_t)(jitter_ms * (double)NS_PER_MS);
    return (struct hold){arrived_ns + (wait_ns > 0 ? wait_ns : 0), hold_ms * NS_PER_MS};
}

int64_t hold_release_ns(const struct hold *hold, int64_t ready_ns)
{
    if (hold->until_ns == 0)
        return ready_ns;
    int64_t late_ns = ready_ns - hold->until_ns;
    if (late_ns <= 0)
        return hold->until_ns;
    int64_t steps = (late_ns + hold->step_ns - 1) / hold->step_ns;
    return hold->until_ns + steps * hold->step_ns;
}
