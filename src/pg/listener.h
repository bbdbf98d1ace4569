/* LISTEN on a connection of its own, in a thread of its own, straight to the server (never through a pooler). */
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
    /* The connection came up (true) or is lost (false). What was notified in between is lost: start afresh. */
    void (*alive)(void *context, bool alive);
};

struct listener *listener_start(const struct listener_config *config, struct why *why) MUST_CHECK;
void listener_stop(struct listener *listener);
/* True while the last sign of life (an answered ping; one is sent every second) is younger than 3 seconds. */
bool listener_is_alive(const struct listener *listener);

#endif
