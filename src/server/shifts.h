/* The leader's periodic work: expiry with its reminders, the cascade, and the proof of what is erased. */
#ifndef SERVER_SHIFTS_H
#define SERVER_SHIFTS_H

#include "customers/customers.h"
#include "customers/last_mail.h"
#include "erasure/eraser.h"
#include "erasure/prove.h"
#include "settings/settings.h"
#include "work/leader.h"

struct shifts {
    _Atomic(const struct settings *) settings; /* those in force; older ones are kept until the end */
    _Atomic int64_t expiry_ms, cascade_ms;     /* how often each; the proof as the cascade */
    const struct customers *customers;         /* says by which terms they are deleted */
    struct eraser eraser;
    struct prover prover;
    struct shift *expiry[EXPIRY_PARTS], *cascade, *proof;
};

void shifts_configure(struct shifts *shifts, const struct settings *s);
enum err shifts_start(struct shifts *shifts, const char *url, const struct leader *leader,
                      const struct customers *customers, struct keeper *keeper, struct why *why) MUST_CHECK;
void shifts_stop(struct shifts *shifts);

#endif
