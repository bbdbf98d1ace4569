/* One connection to RabbitMQ with one channel, used by one thread; only broker_interrupt may come from another.
 *
 * Everything that waits has an end: connecting, each question, writing (by heartbeats) and waiting for confirms. A
 * connection that failed in any way is closed at once, so that nothing late is taken for an answer. */
#ifndef EVENTS_BROKER_H
#define EVENTS_BROKER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

#define EVENTS_EXCHANGE "reclaim.events"
#define RECEIPTS_QUEUE "reclaim.receipts"
#define RECEIPTS_DEAD_QUEUE "reclaim.receipts.dead"
#define REASON_HEADER "x-reclaim-reason"

#define BROKER_BATCH_MAX 1000

struct broker;

/* amqp://user:password@host:port/vhost or amqps://…; ?cacertfile=, certfile= and keyfile= say what TLS trusts and shows.
 * ERR_INPUT when it makes no sense. */
enum err broker_check_url(const char *url, struct why *why) MUST_CHECK;

struct broker *broker_new(const char *url, struct why *why) MUST_CHECK; /* connects nothing yet */
void broker_free(struct broker *b);
void broker_cleanup(struct broker **b);

/* ERR_CLOSED, with the broker's own words in `why`, which never holds the password. */
enum err broker_connect(struct broker *b, struct why *why) MUST_CHECK;
void broker_disconnect(struct broker *b);
bool broker_is_up(const struct broker *b);
/* What is under way fails soon, and whatever is asked later at once. */
void broker_interrupt(struct broker *b);
/* Looks, without waiting, whether an idle connection still stands, and keeps it alive; ERR_CLOSED when it is lost. Not
 * for one that consumes. */
enum err broker_tend(struct broker *b) MUST_CHECK;
/* Tells the broker that we live, without reading anything. */
enum err broker_beat(struct broker *b) MUST_CHECK;

/* The exchange for events, the queue of receipts and the one for bad ones: declared where they are missing, left as
 * they are where an operator has made them. */
enum err broker_declare(struct broker *b, struct why *why) MUST_CHECK;
/* The name of the first of them that is missing; NULL when all are there. */
enum err broker_find_missing(struct broker *b, const char **ret_name, struct why *why) MUST_CHECK;

struct broker_message {
    const char *exchange, *key; /* "" and a queue's name goes straight to that queue */
    const char *content_type;   /* NULL: none */
    const char *type;           /* NULL: none */
    const char *id;             /* unique among those that wait for their confirm; at most 63 bytes */
    const char *reason;         /* why it was refused; NULL: no such header */
    struct str body;
};

enum fate {
    FATE_UNKNOWN,
    FATE_TAKEN,    /* confirmed: as durable as the queues that it reached */
    FATE_RETURNED, /* confirmed, but no queue was bound for it */
    FATE_REFUSED,  /* the broker could not keep it */
};

/* Persistent and mandatory. At most BROKER_BATCH_MAX before the next broker_settle. */
enum err broker_publish(struct broker *b, const struct broker_message *m, struct why *why) MUST_CHECK;
/* Waits for the confirms of all that was published since the last call; fates in that order. Whatever ends it early
 * leaves the rest unknown and the connection closed. */
enum err broker_settle(struct broker *b, enum fate *fates, size_t count, int64_t patience_ns,
                       struct why *why) MUST_CHECK;

struct broker_delivery {
    uint64_t tag;
    bool redelivered;
    uint32_t behind; /* of broker_get: how many more the queue has */
    struct str body; /* until broker_release */
    char id[64], content_type[64], reason[256];
    void *held;
};

/* Takes up to `prefetch` messages ahead; each must be acknowledged. */
enum err broker_consume(struct broker *b, const char *queue, uint16_t prefetch, struct why *why) MUST_CHECK;
/* The next message of the queue that is consumed; ERR_TIMEOUT when none came in time. */
enum err broker_next(struct broker *b, int64_t patience_ns, struct broker_delivery *ret, struct why *why) MUST_CHECK;
/* One message of a queue, without consuming it; ERR_MISSING when it is empty. Not acknowledged: it goes back when the
 * connection ends. */
enum err broker_get(struct broker *b, const char *queue, struct broker_delivery *ret, struct why *why) MUST_CHECK;
enum err broker_ack(struct broker *b, uint64_t tag, struct why *why) MUST_CHECK;
void broker_release(struct broker_delivery *d);

#endif
