/* Runs a long task of the leader on a separate thread and connection, so that it does not delay duties
 * (work/leader.h): at intervals while this instance leads, and at once when it becomes the leader. */
#ifndef WORK_SHIFT_H
#define WORK_SHIFT_H

#include <stdatomic.h>

#include "pg/pg.h"

struct shift;

struct shift_config {
    const char *name; /* for log lines */
    const char *url;
    const _Atomic int64_t *every_ms;
    int leads_fd; /* readable while this instance leads: leader_fd() */
    /* Blocks; checks shift_goes_on() between its parts. After a failure it is run again within a few seconds. */
    enum err (*run)(void *context, struct pg *pg, struct shift *shift);
    void *context;
};

struct shift *shift_start(const struct shift_config *config, struct why *why) MUST_CHECK;
void shift_stop(struct shift *shift); /* waits for the current part; NULL is fine */
/* False if the program stops, another instance leads, or the database may be a restored one. Always true for NULL. */
bool shift_goes_on(struct shift *shift);

#endif
