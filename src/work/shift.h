/* Long work of the leader on a thread and a connection of its own, so that it keeps no duty waiting (work/leader.h): done
 * every so often while this instance leads, and at once when it has become the leader. */
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
    /* Linear; asks shift_goes_on between its parts. After a failure it is run again within a few seconds. */
    enum err (*run)(void *context, struct pg *pg, struct shift *shift);
    void *context;
};

struct shift *shift_start(const struct shift_config *config, struct why *why) MUST_CHECK;
void shift_stop(struct shift *shift); /* waits for the part under way; NULL is fine */
/* False once the work is to end: the program stops, or another instance leads. NULL goes on for ever. */
bool shift_goes_on(struct shift *shift);

#endif
