/* Threads beside the request threads: the relay of events to the broker, and the consumer of receipts. */
#ifndef SERVER_BACKGROUND_H
#define SERVER_BACKGROUND_H

#include "settings/settings.h"
#include "work/leader.h"

struct background;

struct background_config {
    const struct settings *settings;
    const char *url, *direct_url;
    const struct leader *leader; /* must outlive it */
};

/* NULL with OK when no broker is set. */
enum err background_start(const struct background_config *config, struct background **ret, struct why *why) MUST_CHECK;
void background_stop(struct background *background); /* NULL is fine */

#endif
