/* The exchange and queues that Reclaim needs. Checked with a passive declare first: an operator may have declared
 * them with other arguments, or Reclaim may lack the permission to declare them. */

#include "events/inside.h"

#define PARTS 3

static amqp_bytes_t name_of(int part)
{
    static const char *const names[PARTS] = {EVENTS_EXCHANGE, RECEIPTS_QUEUE, RECEIPTS_DEAD_QUEUE};
    return amqp_cstring_bytes(names[part]);
}

static amqp_table_entry_t text_entry(const char *key, const char *value)
{
    return (amqp_table_entry_t){
        .key = amqp_cstring_bytes(key),
        .value = {.kind = AMQP_FIELD_KIND_UTF8, .value.bytes = amqp_cstring_bytes(value)},
    };
}

/* Receipts: a quorum queue survives the loss of a node; messages the broker dead-letters go to the same queue as
 * refused ones. */
static void send_declare(struct broker *b, int part, bool passive)
{
    amqp_table_entry_t entries[] = {text_entry("x-queue-type", "quorum"), text_entry("x-dead-letter-exchange", ""),
                                    text_entry("x-dead-letter-routing-key", RECEIPTS_DEAD_QUEUE)};
    amqp_table_t quorum = {(int)COUNT_OF(entries), entries};
    if (part == 0)
        amqp_exchange_declare(b->connection, BROKER_CHANNEL, name_of(part), amqp_cstring_bytes("topic"), passive, 1, 0,
                              0, amqp_empty_table);
    else
        amqp_queue_declare(b->connection, BROKER_CHANNEL, name_of(part), passive, 1, 0, 0,
                           part == 1 && !passive ? quorum : amqp_empty_table);
}

static bool is_not_found(amqp_rpc_reply_t reply)
{
    return reply.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION && reply.reply.id == AMQP_CHANNEL_CLOSE_METHOD &&
           ((amqp_channel_close_t *)reply.reply.decoded)->reply_code == AMQP_NOT_FOUND;
}

/* OK; ERR_MISSING; or the connection is lost. */
static enum err check_exists(struct broker *b, int part, struct why *why)
{
    send_declare(b, part, true);
    amqp_rpc_reply_t reply = amqp_get_rpc_reply(b->connection);
    if (reply.reply_type == AMQP_RESPONSE_NORMAL)
        return OK;
    if (!is_not_found(reply))
        return broker_lost(b, why, "checking exchange and queues", reply);
    amqp_channel_close_ok_t close_ok = {0};
    int status = amqp_send_method(b->connection, BROKER_CHANNEL, AMQP_CHANNEL_CLOSE_OK_METHOD, &close_ok);
    if (status != AMQP_STATUS_OK)
        return broker_lost_status(b, why, "checking exchange and queues", status);
    enum err e = broker_open_channel(b, why); /* "not found" closes the channel */
    return e ? e : ERR_MISSING;
}

enum err broker_find_missing(struct broker *b, const char **ret_name, struct why *why)
{
    *ret_name = NULL;
    for (int part = 0; part < PARTS; part++) {
        enum err e = check_exists(b, part, why);
        if (e == ERR_MISSING) {
            *ret_name = name_of(part).bytes;
            return OK;
        }
        if (e)
            return e;
    }
    return OK;
}

enum err broker_declare(struct broker *b, struct why *why)
{
    for (int part = 0; part < PARTS; part++) {
        enum err e = check_exists(b, part, why);
        if (e == OK)
            continue;
        if (e != ERR_MISSING)
            return e;
        send_declare(b, part, false);
        amqp_rpc_reply_t reply = amqp_get_rpc_reply(b->connection);
        if (reply.reply_type != AMQP_RESPONSE_NORMAL)
            return broker_lost(b, why, "declaring exchange and queues", reply);
    }
    return OK;
}
