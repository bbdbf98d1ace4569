/* The connection as shared by the files of this folder. Private to it. */
#ifndef EVENTS_INSIDE_H
#define EVENTS_INSIDE_H

#include <amqp.h>
#include <amqp_framing.h>
#include <pthread.h>

#include "events/broker.h"
#include "pg/pg.h"

#define BROKER_CHANNEL 1

struct broker {
    char *url; /* parsed in place; wiped when freed */
    size_t url_len;
    struct amqp_connection_info address; /* points into url */
    const char *ca_file, *certificate_file, *key_file;
    amqp_connection_state_t connection; /* NULL while down */

    pthread_mutex_t lock;
    int fd; /* under the lock, for broker_interrupt; -1 while down */
    bool interrupted;
    bool refused_message; /* the broker closed the channel over what was published */

    /* Unconfirmed messages. Tags count from 1 for each channel. */
    uint64_t next_tag, first_tag;
    char (*ids)[64]; /* array of BROKER_BATCH_MAX */
};

struct timeval broker_timeval(int64_t ns);
/* Sets `why`, closes the connection and returns ERR_CLOSED. */
enum err broker_lost(struct broker *b, struct why *why, const char *doing, amqp_rpc_reply_t reply);
enum err broker_lost_status(struct broker *b, struct why *why, const char *doing, int status);
/* The same after the broker closed the channel or the connection, with its message. */
enum err broker_closed_by(struct broker *b, struct why *why, const char *doing, const amqp_method_t *method);
enum err broker_open_channel(struct broker *b, struct why *why) MUST_CHECK;

#endif
