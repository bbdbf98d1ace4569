#include "server/shifts.h"

#define CASCADE_EVERY_MS 500 /* costs one index look-up when there is nothing to do */

static enum err expire(void *context, struct pg *pg, struct shift *shift)
{
    struct shifts *shifts = context;
    const struct settings *s = atomic_load(&shifts->settings);
    enum err e = OK;
    if (shifts->last_mail_key)
        e = reminders_run(pg, s->reminders.at_ms, s->reminders.count, shift);
    return e ? e : expiry_run(shifts->last_mail_key, pg, s->expiry_brake, shift);
}

void shifts_configure(struct shifts *shifts, const struct settings *s)
{
    atomic_store(&shifts->settings, s);
    atomic_store(&shifts->expiry_ms, s->expiry_interval_ms);
    atomic_store(&shifts->cascade_ms, CASCADE_EVERY_MS);
    atomic_store(&shifts->eraser.deadline_ms, s->cascade_deadline_ms);
}

enum err shifts_start(struct shifts *shifts, const char *url, const struct leader *leader,
                      const struct digest *last_mail_key, struct why *why)
{
    shifts->last_mail_key = last_mail_key;
    struct shift_config expiry = {"expiry", url, &shifts->expiry_ms, leader_fd(leader), expire, shifts};
    struct shift_config cascade = {"cascade", url, &shifts->cascade_ms, leader_fd(leader), eraser_run, &shifts->eraser};
    shifts->expiry = shift_start(&expiry, why);
    shifts->cascade = shift_start(&cascade, why);
    return shifts->expiry && shifts->cascade ? OK : ERR_MEMORY;
}

void shifts_stop(struct shifts *shifts)
{
    shift_stop(shifts->expiry);
    shift_stop(shifts->cascade);
    shifts->expiry = shifts->cascade = NULL;
}
