/* The leader's long work, wired: expiry with its reminders, and the cascade. */
#ifndef OPS_SHIFTS_H
#define OPS_SHIFTS_H

#include "cascade/eraser.h"
#include "customers/expiry.h"
#include "customers/farewell.h"
#include "ops/settings.h"
#include "work/leader.h"

struct shifts {
    _Atomic(const struct settings *) settings; /* those in force; older ones stay until the end */
    _Atomic int64_t expiry_ms, cascade_ms;     /* how often each */
    struct ending ending;
    struct eraser eraser;
    struct shift *expiry, *cascade;
};

void shifts_configure(struct shifts *shifts, const struct settings *s);
enum err shifts_start(struct shifts *shifts, const char *url, const struct leader *leader, const struct ending *ending,
                      struct why *why) MUST_CHECK;
void shifts_stop(struct shifts *shifts);

#endif
