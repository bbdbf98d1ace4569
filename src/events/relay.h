/* Carries the outbox to RabbitMQ: a thread of every instance, of which the leader's works. Each event is published until
 * the broker has confirmed it, in order per customer; it may come twice. */
#ifndef EVENTS_RELAY_H
#define EVENTS_RELAY_H

#include "pg/pg.h"

struct relay_config {
    const char *amqp_url, *direct_url; /* never through a pooler: it listens */
    bool (*leads)(void *context);
    void *context;
};

struct relay;

struct relay *relay_start(const struct relay_config *config, struct why *why) MUST_CHECK;
void relay_stop(struct relay *relay); /* NULL is fine */

#endif
