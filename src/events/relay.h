/* Publishes the outbox to RabbitMQ, on a thread in every instance that is active on the leader. Each event is published
 * until the broker has confirmed it, in order per customer; duplicates are possible. */
#ifndef EVENTS_RELAY_H
#define EVENTS_RELAY_H

#include "pg/pg.h"

struct relay_config {
    const char *amqp_url, *direct_url; /* not through a pooler: it uses LISTEN */
    bool (*leads)(void *context);
    void *context;
};

struct relay;

struct relay *relay_start(const struct relay_config *config, struct why *why) MUST_CHECK;
void relay_stop(struct relay *relay); /* NULL is fine */

#endif
