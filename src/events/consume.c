/* Receiving messages, from a consumer or one at a time. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "events/inside.h"

enum err broker_consume(struct broker *b, const char *queue, uint16_t prefetch, struct why *why)
{
    amqp_basic_qos(b->connection, BROKER_CHANNEL, 0, prefetch, 0);
    amqp_rpc_reply_t reply = amqp_get_rpc_reply(b->connection);
    if (reply.reply_type == AMQP_RESPONSE_NORMAL) {
        amqp_basic_consume(b->connection, BROKER_CHANNEL, amqp_cstring_bytes(queue), amqp_empty_bytes, 0, 0, 0,
                           amqp_empty_table);
        reply = amqp_get_rpc_reply(b->connection);
    }
    return reply.reply_type == AMQP_RESPONSE_NORMAL ? OK : broker_lost(b, why, "consuming", reply);
}

/* Truncates to fit; the caller must escape control characters. */
static void copy_bytes(amqp_bytes_t from, char *into, size_t size)
{
    size_t len = from.len < size ? from.len : size - 1;
    if (len)
        memcpy(into, from.bytes, len);
    into[len] = '\0';
}

static bool is_text(const amqp_field_value_t *v)
{
    return v->kind == AMQP_FIELD_KIND_UTF8 || v->kind == AMQP_FIELD_KIND_BYTES;
}

static void read_reason(const amqp_table_t *headers, struct broker_delivery *d)
{
    for (int i = 0; i < headers->num_entries; i++) {
        const amqp_table_entry_t *h = &headers->entries[i];
        struct str key = {h->key.bytes, h->key.len};
        bool by_us = str_eq(key, STR(REASON_HEADER)), by_broker = str_eq(key, STR("x-first-death-reason"));
        if (is_text(&h->value) && (by_us || (by_broker && !d->reason[0])))
            copy_bytes(h->value.value.bytes, d->reason, sizeof d->reason);
    }
}

static void read_properties(const amqp_message_t *m, struct broker_delivery *d)
{
    const amqp_basic_properties_t *p = &m->properties;
    if (p->_flags & AMQP_BASIC_MESSAGE_ID_FLAG)
        copy_bytes(p->message_id, d->id, sizeof d->id);
    if (p->_flags & AMQP_BASIC_CONTENT_TYPE_FLAG)
        copy_bytes(p->content_type, d->content_type, sizeof d->content_type);
    if (p->_flags & AMQP_BASIC_HEADERS_FLAG)
        read_reason(&p->headers, d);
    d->body = (struct str){m->body.len ? m->body.bytes : "", m->body.len};
}

enum err broker_next(struct broker *b, int64_t limit_ns, struct broker_delivery *ret, struct why *why)
{
    amqp_envelope_t *envelope = calloc(1, sizeof *envelope);
    if (!envelope)
        return why_set(why, ERR_MEMORY, "no memory for a message");
    struct timeval patience = broker_timeval(limit_ns);
    amqp_maybe_release_buffers(b->connection);
    amqp_rpc_reply_t reply = amqp_consume_message(b->connection, envelope, &patience, 0);
    if (reply.reply_type == AMQP_RESPONSE_NORMAL) {
        *ret = (struct broker_delivery){
            .tag = envelope->delivery_tag, .redelivered = envelope->redelivered, .held = envelope};
        read_properties(&envelope->message, ret);
        return OK;
    }
    free(envelope);
    if (reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION && reply.library_error == AMQP_STATUS_TIMEOUT)
        return ERR_TIMEOUT;
    amqp_frame_t frame;
    struct timeval none = {0, 0};
    /* A frame that is no delivery carries the reason why the broker closed the channel, such as a deleted queue. */
    if (reply.library_error == AMQP_STATUS_UNEXPECTED_STATE &&
        amqp_simple_wait_frame_noblock(b->connection, &frame, &none) == AMQP_STATUS_OK &&
        frame.frame_type == AMQP_FRAME_METHOD)
        return broker_closed_by(b, why, "consuming", &frame.payload.method);
    return broker_lost(b, why, "consuming", reply);
}

enum err broker_get(struct broker *b, const char *queue, struct broker_delivery *ret, struct why *why)
{
    amqp_maybe_release_buffers(b->connection);
    amqp_rpc_reply_t reply = amqp_basic_get(b->connection, BROKER_CHANNEL, amqp_cstring_bytes(queue), 0);
    if (reply.reply_type != AMQP_RESPONSE_NORMAL)
        return broker_lost(b, why, "reading a queue", reply);
    if (reply.reply.id != AMQP_BASIC_GET_OK_METHOD)
        return ERR_MISSING;
    const amqp_basic_get_ok_t *got = reply.reply.decoded;
    struct broker_delivery d = {
        .tag = got->delivery_tag, .redelivered = got->redelivered, .behind = got->message_count};
    amqp_envelope_t *envelope = calloc(1, sizeof *envelope);
    if (!envelope)
        return why_set(why, ERR_MEMORY, "no memory for a message");
    reply = amqp_read_message(b->connection, BROKER_CHANNEL, &envelope->message, 0);
    if (reply.reply_type != AMQP_RESPONSE_NORMAL) {
        free(envelope);
        return broker_lost(b, why, "reading a message", reply);
    }
    d.held = envelope;
    read_properties(&envelope->message, &d);
    *ret = d;
    return OK;
}

enum err broker_ack(struct broker *b, uint64_t tag, struct why *why)
{
    int status = amqp_basic_ack(b->connection, BROKER_CHANNEL, tag, 0);
    return status == AMQP_STATUS_OK ? OK : broker_lost_status(b, why, "acknowledging", status);
}

void broker_release(struct broker_delivery *d)
{
    if (!d->held)
        return;
    amqp_destroy_envelope(d->held);
    free(d->held);
    *d = (struct broker_delivery){0};
}
