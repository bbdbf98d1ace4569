/* Publishing with confirms. librabbitmq does not support them, so they are read as frames. */
#include <string.h>

#include "base/clock.h"
#include "events/inside.h"

#define PERSISTENT 2

static amqp_bytes_t bytes_of(const char *z)
{
    return amqp_cstring_bytes(z);
}

enum err broker_publish(struct broker *b, const struct broker_message *m, struct why *why)
{
    if (!b->connection || b->next_tag - b->first_tag >= BROKER_BATCH_MAX)
        return why_set(why, b->connection ? ERR_FULL : ERR_CLOSED, "too many unconfirmed messages, or no connection");
    amqp_basic_properties_t p = {._flags = AMQP_BASIC_DELIVERY_MODE_FLAG | AMQP_BASIC_MESSAGE_ID_FLAG,
                                 .delivery_mode = PERSISTENT,
                                 .message_id = bytes_of(m->id)};
    amqp_table_entry_t reason = {.key = bytes_of(REASON_HEADER), .value = {.kind = AMQP_FIELD_KIND_UTF8}};
    if (m->content_type) {
        p._flags |= AMQP_BASIC_CONTENT_TYPE_FLAG;
        p.content_type = bytes_of(m->content_type);
    }
    if (m->type) {
        p._flags |= AMQP_BASIC_TYPE_FLAG;
        p.type = bytes_of(m->type);
    }
    if (m->reason) {
        reason.value.value.bytes = bytes_of(m->reason);
        p._flags |= AMQP_BASIC_HEADERS_FLAG;
        p.headers = (amqp_table_t){1, &reason};
    }
    amqp_bytes_t body = {m->body.len, (void *)(uintptr_t)m->body.at};
    int status =
        amqp_basic_publish(b->connection, BROKER_CHANNEL, bytes_of(m->exchange), bytes_of(m->key), 1, 0, &p, body);
    if (status != AMQP_STATUS_OK)
        return broker_lost_status(b, why, "publishing", status);
    char *id = b->ids[b->next_tag++ - b->first_tag];
    return str_copy(str_of(m->id), id, sizeof *b->ids);
}

struct confirming {
    struct broker *b;
    enum publish_result *results;
    size_t count, open; /* all, and those unconfirmed */
    size_t below;       /* all before this one are confirmed: "multiple" starts here */
    size_t next_return; /* messages are returned in the order of publishing */
    uint64_t body_left; /* of a returned message, to be skipped */
    int64_t deadline_ns;
};

static void confirm_one(struct confirming *s, size_t i, enum publish_result publish_result)
{
    if (s->results[i] == PUBLISH_UNKNOWN)
        s->results[i] = publish_result;
    s->open--;
}

/* False for a tag that was not published in this batch. */
static bool confirm_tag(struct confirming *s, uint64_t tag, bool multiple, bool *confirmed,
                        enum publish_result publish_result)
{
    if (tag < s->b->first_tag || tag >= s->b->first_tag + s->count)
        return false;
    size_t last = (size_t)(tag - s->b->first_tag);
    for (size_t i = multiple ? s->below : last; i <= last; i++) {
        if (confirmed[i])
            continue;
        confirmed[i] = true;
        confirm_one(s, i, publish_result);
    }
    while (s->below < s->count && confirmed[s->below])
        s->below++;
    return true;
}

static enum err read_returned(struct confirming *s, const amqp_frame_t *header)
{
    const amqp_basic_properties_t *p = header->payload.properties.decoded;
    s->body_left = header->payload.properties.body_size;
    struct str id = {p->message_id.bytes, p->message_id.len};
    for (size_t n = 0; n < s->count; n++) {
        size_t i = (s->next_return + n) % s->count;
        if (!str_eq(id, str_of(s->b->ids[i])))
            continue;
        s->results[i] = PUBLISH_RETURNED;
        s->next_return = i + 1;
        return OK;
    }
    return ERR_INPUT;
}

static enum err read_method(struct confirming *s, const amqp_method_t *m, bool *confirmed, struct why *why)
{
    const amqp_basic_ack_t *ack = m->decoded;
    const amqp_basic_nack_t *nack = m->decoded;
    bool known = true;
    switch (m->id) {
    case AMQP_BASIC_ACK_METHOD:
        known = confirm_tag(s, ack->delivery_tag, ack->multiple, confirmed, PUBLISH_CONFIRMED);
        break;
    case AMQP_BASIC_NACK_METHOD:
        known = confirm_tag(s, nack->delivery_tag, nack->multiple, confirmed, PUBLISH_REFUSED);
        break;
    case AMQP_BASIC_RETURN_METHOD: /* its header follows */
        break;
    default:
        return broker_closed_by(s->b, why, "waiting for confirms", m);
    }
    return known ? OK : broker_lost_status(s->b, why, "a confirm for an unknown message", AMQP_STATUS_UNEXPECTED_STATE);
}

static enum err read_frame(struct confirming *s, const amqp_frame_t *frame, bool *confirmed, struct why *why)
{
    switch (frame->frame_type) {
    case AMQP_FRAME_METHOD:
        return read_method(s, &frame->payload.method, confirmed, why);
    case AMQP_FRAME_HEADER:
        if (read_returned(s, frame))
            return broker_lost_status(s->b, why, "a return of an unknown message", AMQP_STATUS_UNEXPECTED_STATE);
        return OK;
    case AMQP_FRAME_BODY:
        s->body_left -= frame->payload.body_fragment.len;
        return OK;
    default:
        return OK;
    }
}

enum err broker_await_confirms(struct broker *b, enum publish_result *results, size_t count, int64_t limit_ns,
                               struct why *why)
{
    bool confirmed[BROKER_BATCH_MAX] = {false};
    if (!b->connection || count != b->next_tag - b->first_tag)
        return why_set(why, ERR_CLOSED, "no connection");
    struct confirming s = {.b = b, .results = results, .count = count, .open = count};
    s.deadline_ns = clock_ns() + limit_ns;
    memset(results, 0, count * sizeof *results);
    while (s.open > 0 || s.body_left > 0) {
        amqp_frame_t frame;
        struct timeval left = broker_timeval(s.deadline_ns - clock_ns());
        int status = amqp_simple_wait_frame_noblock(b->connection, &frame, &left);
        if (status != AMQP_STATUS_OK)
            return broker_lost_status(b, why, "waiting for confirms", status);
        enum err e = read_frame(&s, &frame, confirmed, why);
        if (e)
            return e;
    }
    b->first_tag = b->next_tag;
    amqp_maybe_release_buffers(b->connection);
    return OK;
}
