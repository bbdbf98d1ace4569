/* One connection to RabbitMQ with one channel, used by one thread; only broker_interrupt() may be called from another.
 *
 * Connecting, each request, writing (by heartbeats) and waiting for confirms have a time-out. After any error the
 * connection is closed at once, so that no late frame is read as the reply to another request. */
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

/* amqp://user:password@host:port/vhost or amqps://…; ?cacertfile=, certfile= and keyfile= are for TLS.
 * ERR_INPUT if it is not valid. */
enum err broker_check_url(const char *url, struct why *why) MUST_CHECK;

struct broker *broker_new(const char *url, struct why *why) MUST_CHECK; /* does not connect */
void broker_free(struct broker *b);
void broker_cleanup(struct broker **b);

/* ERR_CLOSED, with the broker's message in `why`, which never contains the password. */
enum err broker_connect(struct broker *b, struct why *why) MUST_CHECK;
/* Drops the connection. The broker may not have handled what was sent last, acknowledgements for instance. */
void broker_disconnect(struct broker *b);
/* Disconnects once the broker has handled everything that was sent; ERR_CLOSED if it did not say so. */
enum err broker_close(struct broker *b, struct why *why) MUST_CHECK;
bool broker_is_up(const struct broker *b);
/* The current operation fails soon, later ones at once. */
void broker_interrupt(struct broker *b);
/* Checks an idle connection without blocking, and sends heartbeats; ERR_CLOSED if it is lost. Not for a connection that
 * consumes. */
enum err broker_check(struct broker *b) MUST_CHECK;
/* Does not read. */
enum err broker_send_heartbeat(struct broker *b) MUST_CHECK;

/* Declares the exchange for events, the queue for receipts and its dead-letter queue if they are missing. Existing
 * ones are not changed: an operator may have declared them with other arguments. */
enum err broker_declare(struct broker *b, struct why *why) MUST_CHECK;
/* The name of the first of them that is missing; NULL if all exist. */
enum err broker_find_missing(struct broker *b, const char **ret_name, struct why *why) MUST_CHECK;

struct broker_message {
    const char *exchange, *key; /* "" and a queue's name: published to that queue */
    const char *content_type;   /* NULL: none */
    const char *type;           /* NULL: none */
    const char *id;             /* unique among unconfirmed messages; at most 63 bytes */
    const char *reason;         /* value of REASON_HEADER; NULL: no such header */
    struct str body;
};

enum publish_result {
    PUBLISH_UNKNOWN,
    PUBLISH_CONFIRMED, /* confirmed: stored in every queue it was routed to */
    PUBLISH_RETURNED,  /* confirmed, but no queue was bound for it */
    PUBLISH_REFUSED,   /* negative confirm: not stored */
};

/* Persistent and mandatory. At most BROKER_BATCH_MAX before the next broker_await_confirms(). */
enum err broker_publish(struct broker *b, const struct broker_message *m, struct why *why) MUST_CHECK;
/* Waits for the confirms of all messages published since the last call; results are in that order. On an error the
 * rest are PUBLISH_UNKNOWN and the connection is closed. */
enum err broker_await_confirms(struct broker *b, enum publish_result *results, size_t count, int64_t limit_ns,
                               struct why *why) MUST_CHECK;

/* True when the broker closed the channel or the connection over a message published since the last connect: most often over
 * its size. It does not say over which. */
bool broker_refused_message(const struct broker *b);

struct broker_delivery {
    uint64_t tag;
    bool redelivered;
    uint32_t behind; /* after broker_get(): messages left in the queue */
    struct str body; /* valid until broker_release() */
    char id[64], content_type[64], reason[256];
    void *held;
};

/* Up to `prefetch` messages are delivered ahead; each must be acknowledged. */
enum err broker_consume(struct broker *b, const char *queue, uint16_t prefetch, struct why *why) MUST_CHECK;
/* The next message of the consumed queue; ERR_TIMEOUT if none arrived in time. */
enum err broker_next(struct broker *b, int64_t limit_ns, struct broker_delivery *ret, struct why *why) MUST_CHECK;
/* One message of a queue, without a consumer; ERR_MISSING if it is empty. Unless acknowledged, it is requeued when the
 * connection ends. */
enum err broker_get(struct broker *b, const char *queue, struct broker_delivery *ret, struct why *why) MUST_CHECK;
enum err broker_ack(struct broker *b, uint64_t tag, struct why *why) MUST_CHECK;
void broker_release(struct broker_delivery *d);

#endif
