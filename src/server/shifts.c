#include "server/shifts.h"

#include "base/restored.h"

#define CASCADE_EVERY_MS 500 /* costs one index look-up when there is nothing to do */

static enum err expire_part(struct shifts *shifts, struct pg *pg, int part, struct shift *shift)
{
    if (!shift_goes_on(shift))
        return OK;
    const struct deletion_terms terms = customers_deletion_terms(shifts->customers);
    return expiry_run(&terms, pg, atomic_load(&shifts->settings)->expiry_brake, part, shift);
}

static enum err remind_and_expire(void *context, struct pg *pg, struct shift *shift)
{
    struct shifts *shifts = context;
    const struct settings *s = atomic_load(&shifts->settings);
    enum err e = OK;
    if (!restored_may_be() && customers_deletion_terms(shifts->customers).last_mail_key)
        e = reminders_run(pg, s->reminders.at_ms, s->reminders.count, shift);
    return e ? e : expire_part(shifts, pg, 0, shift);
}

static enum err expire_others(void *context, struct pg *pg, struct shift *shift)
{
    return expire_part(context, pg, 1, shift);
}

void shifts_configure(struct shifts *shifts, const struct settings *s)
{
    atomic_store(&shifts->settings, s);
    atomic_store(&shifts->expiry_ms, s->expiry_interval_ms);
    atomic_store(&shifts->cascade_ms, CASCADE_EVERY_MS);
    atomic_store(&shifts->eraser.deadline_ms, s->cascade_deadline_ms);
    atomic_store(&shifts->prover.backup_retention_ms, s->backup_retention_ms);
    atomic_store(&shifts->prover.log.retention_ms, s->audit_retention_ms);
}

enum err shifts_start(struct shifts *shifts, const char *url, const struct leader *leader,
                      const struct customers *customers, struct keeper *keeper, struct why *why)
{
    shifts->customers = customers;
    shifts->prover.keeper = keeper;
    shifts->prover.log.keys = keeper->keys;
    struct shift_config expiry = {"expiry", url, &shifts->expiry_ms, leader_fd(leader), remind_and_expire, shifts};
    struct shift_config others = {"expiry, second part", url,           &shifts->expiry_ms,
                                  leader_fd(leader),     expire_others, shifts};
    struct shift_config cascade = {"cascade", url, &shifts->cascade_ms, leader_fd(leader), eraser_run, &shifts->eraser};
    struct shift_config proof = {"proof", url, &shifts->cascade_ms, leader_fd(leader), prover_run, &shifts->prover};
    shifts->expiry[0] = shift_start(&expiry, why);
    shifts->expiry[1] = shift_start(&others, why);
    shifts->cascade = shift_start(&cascade, why);
    shifts->proof = shift_start(&proof, why);
    return shifts->expiry[0] && shifts->expiry[1] && shifts->cascade && shifts->proof ? OK : ERR_MEMORY;
}

void shifts_stop(struct shifts *shifts)
{
    for (int i = 0; i < EXPIRY_PARTS; i++) {
        shift_stop(shifts->expiry[i]);
        shifts->expiry[i] = NULL;
    }
    shift_stop(shifts->cascade);
    shift_stop(shifts->proof);
    shifts->cascade = shifts->proof = NULL;
}
