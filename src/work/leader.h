/* Leader election by an advisory lock on a direct connection: the instance that holds it runs the duties. The lock is
 * released with the connection, so another instance leads within two seconds of a crash, and within some ten seconds if
 * the leader hangs. */
#ifndef WORK_LEADER_H
#define WORK_LEADER_H

#include "pg/pg.h"

/* Runs at intervals on the leader's thread and connection. */
struct duty {
    const char *name;
    int64_t every_ns;
    enum err (*run)(void *context, struct pg *pg, int64_t deadline_ns);
    void *context;
};

#define DUTIES_MAX 8

struct leader_config {
    const char *direct_url; /* not through a pooler: the lock belongs to the session */
    const struct duty *duties;
    size_t duty_count;
};

struct leader;

struct leader *leader_start(const struct leader_config *config, struct why *why) MUST_CHECK;
void leader_stop(struct leader *leader);
bool leader_is_me(const struct leader *leader);
int leader_fd(const struct leader *leader); /* readable while this instance leads: for poll(), never read */

extern const struct statement leader_try, leader_expire, leader_ping;

#endif
