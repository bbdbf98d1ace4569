/* LISTEN on a separate connection and thread. The connection must not go through a transaction pooler. */
#ifndef PG_LISTENER_H
#define PG_LISTENER_H

#include "pg/pg.h"

struct listener;

struct listener_config {
    const char *url;
    const char *const *channels; /* NULL-terminated */
    void *context;
    /* Called on the listener's thread. */
    void (*heard)(void *context, const char *channel, const char *payload);
    /* Connected (true) or disconnected (false). Notifications sent while disconnected are lost: reread all state. */
    void (*alive)(void *context, bool alive);
};

struct listener *listener_start(const struct listener_config *config, struct why *why) MUST_CHECK;
void listener_stop(struct listener *listener);
/* True when the last ping that was answered is less than 3 seconds old; one is sent every second. */
bool listener_is_alive(const struct listener *listener);

#endif
