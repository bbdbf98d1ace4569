/* What must be done once, however many instances run: the one that holds an advisory lock on its own direct connection
 * does it. The lock goes with the connection, so a dead leader is followed within a second or two, and one that hangs
 * within some ten seconds. */
#ifndef WORK_LEADER_H
#define WORK_LEADER_H

#include "pg/pg.h"

/* Something the leader does every so often, on the leader's thread and connection. */
struct duty {
    const char *name;
    int64_t every_ns;
    enum err (*run)(void *context, struct pg *pg, int64_t deadline_ns);
    void *context;
};

#define DUTIES_MAX 8

struct leader_config {
    const char *direct_url; /* never through a pooler: the lock belongs to a session */
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
