/* A service that follows Reclaim's events and applies each once: copy it, and put your own work where apply() is.
 *
 * Events come at least once and in order per customer, but a repeat may follow a newer event. So the last epoch and
 * sequence of each customer are kept beside the state that follows from it, in the same transaction, and whatever is not
 * newer is dropped. Both are compared, because sequences go back when Reclaim's database is restored from a backup; the
 * epoch has grown then. A message is acknowledged after that commit: whoever dies in between gets it again, and drops it. */
#include <amqp.h>
#include <amqp_framing.h>
#include <amqp_tcp_socket.h>
#include <jansson.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHANNEL 1
#define PREFETCH 100
#define HEARTBEAT_S 10

static const char *queue;

static const char *setting(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value && *value ? value : otherwise;
}

/* The state, and up to where it is known. The second statement is for a table from before events had an epoch. */
static const char schema[] =
    "CREATE TABLE IF NOT EXISTS customer_states (customer_id uuid PRIMARY KEY, epoch integer NOT NULL DEFAULT 1,"
    " sequence bigint NOT NULL, status text NOT NULL, changes bigint NOT NULL DEFAULT 1);"
    "ALTER TABLE customer_states ADD COLUMN IF NOT EXISTS epoch integer NOT NULL DEFAULT 1";

static const char apply_sql[] =
    "INSERT INTO customer_states (customer_id, epoch, sequence, status) VALUES ($1, $2, $3, $4)"
    " ON CONFLICT (customer_id) DO UPDATE SET epoch = excluded.epoch, sequence = excluded.sequence,"
    " status = excluded.status, changes = customer_states.changes + 1"
    " WHERE (customer_states.epoch, customer_states.sequence) < (excluded.epoch, excluded.sequence)";

struct event {
    const char *id, *customer, *status;
    json_int_t epoch, sequence;
};

enum verdict { APPLIED, STALE, BAD, LATER };

/* One statement is one transaction. More work than this? BEGIN, this first, your work only if it changed a row, COMMIT. */
static enum verdict apply(PGconn *pg, const struct event *e)
{
    char epoch[32], sequence[32];
    snprintf(epoch, sizeof epoch, "%lld", (long long)e->epoch);
    snprintf(sequence, sizeof sequence, "%lld", (long long)e->sequence);
    const char *values[] = {e->customer, epoch, sequence, e->status};
    PGresult *result = PQexecParams(pg, apply_sql, 4, NULL, values, NULL, NULL, 0);
    enum verdict verdict = LATER;
    if (PQresultStatus(result) == PGRES_COMMAND_OK)
        verdict = strcmp(PQcmdTuples(result), "0") == 0 ? STALE : APPLIED;
    else if (PQresultErrorField(result, PG_DIAG_SQLSTATE) &&
             strncmp(PQresultErrorField(result, PG_DIAG_SQLSTATE), "22", 2) == 0)
        verdict = BAD; /* no UUID, say: trying again would not help */
    PQclear(result);
    return verdict;
}

static enum verdict handle(PGconn *pg, amqp_bytes_t body)
{
    struct event e = {.epoch = 1}; /* of events from before they had one */
    json_t *json = json_loadb(body.bytes, body.len, 0, NULL);
    enum verdict verdict = BAD;
    if (json_unpack(json, "{s:s, s:s, s?:I, s:I, s:{s:s}}", "id", &e.id, "subject", &e.customer, "epoch", &e.epoch,
                    "sequence", &e.sequence, "data", "status", &e.status) == 0)
        verdict = apply(pg, &e);
    json_decref(json);
    return verdict;
}

static int fine(amqp_connection_state_t broker)
{
    return amqp_get_rpc_reply(broker).reply_type == AMQP_RESPONSE_NORMAL;
}

static amqp_table_entry_t text(const char *key, const char *value)
{
    return (amqp_table_entry_t){
        amqp_cstring_bytes(key),
        {.kind = AMQP_FIELD_KIND_UTF8, .value.bytes = amqp_cstring_bytes(value)},
    };
}

/* Our queue, bound to the exchange, and one for messages that cannot be read. */
static int declare(amqp_connection_state_t broker)
{
    char dead[256];
    snprintf(dead, sizeof dead, "%s.dead", queue);
    amqp_table_entry_t args[] = {text("x-queue-type", "quorum"), text("x-dead-letter-exchange", ""),
                                 text("x-dead-letter-routing-key", dead)};
    amqp_table_t quorum = {1, args}, with_dead = {3, args};
    amqp_bytes_t name = amqp_cstring_bytes(queue), exchange = amqp_cstring_bytes("reclaim.events");
    amqp_exchange_declare(broker, CHANNEL, exchange, amqp_cstring_bytes("topic"), 0, 1, 0, 0, amqp_empty_table);
    return fine(broker) && amqp_queue_declare(broker, CHANNEL, amqp_cstring_bytes(dead), 0, 1, 0, 0, quorum) &&
           amqp_queue_declare(broker, CHANNEL, name, 0, 1, 0, 0, with_dead) &&
           amqp_queue_bind(broker, CHANNEL, name, exchange, amqp_cstring_bytes("#"), amqp_empty_table) &&
           amqp_basic_qos(broker, CHANNEL, 0, PREFETCH, 0) &&
           amqp_basic_consume(broker, CHANNEL, name, amqp_empty_bytes, 0, 0, 0, amqp_empty_table);
}

static int open_broker(amqp_connection_state_t broker, const char *url)
{
    char copy[2048];
    struct amqp_connection_info to;
    struct timeval patience = {5, 0};
    amqp_socket_t *socket = amqp_tcp_socket_new(broker); /* amqps: amqp_ssl_socket_new, and the authority's file */
    snprintf(copy, sizeof copy, "%s", url);
    return socket && amqp_parse_url(copy, &to) == AMQP_STATUS_OK &&
           amqp_socket_open_noblock(socket, to.host, to.port, &patience) == AMQP_STATUS_OK &&
           amqp_login(broker, to.vhost, 0, 131072, HEARTBEAT_S, AMQP_SASL_METHOD_PLAIN, to.user, to.password)
                   .reply_type == AMQP_RESPONSE_NORMAL &&
           amqp_channel_open(broker, CHANNEL) && fine(broker) && declare(broker);
}

static int settle(amqp_connection_state_t broker, uint64_t tag, enum verdict verdict)
{
    return verdict == BAD ? amqp_basic_reject(broker, CHANNEL, tag, 0) : amqp_basic_ack(broker, CHANNEL, tag, 0);
}

/* Until broker or database is lost. What was not acknowledged comes again. */
static void consume(amqp_connection_state_t broker, PGconn *pg)
{
    for (;;) {
        amqp_envelope_t message;
        amqp_maybe_release_buffers(broker);
        if (amqp_consume_message(broker, &message, NULL, 0).reply_type != AMQP_RESPONSE_NORMAL)
            return;
        enum verdict verdict = handle(pg, message.message.body);
        int lost = verdict == LATER || settle(broker, message.delivery_tag, verdict) != AMQP_STATUS_OK;
        amqp_destroy_envelope(&message);
        if (lost)
            return;
    }
}

int main(void)
{
    queue = setting("QUEUE", "example.customers");
    for (;; sleep(1)) {
        PGconn *pg = PQconnectdb(setting("DATABASE_URL", ""));
        amqp_connection_state_t broker = amqp_new_connection();
        PGresult *made = PQexec(pg, "SET client_min_messages = warning");
        PQclear(made);
        made = PQexec(pg, schema);
        if (PQresultStatus(made) == PGRES_COMMAND_OK && open_broker(broker, setting("AMQP_URL", "amqp://localhost")))
            consume(broker, pg);
        fprintf(stderr, "consumer: broker or database lost; trying again\n");
        PQclear(made);
        amqp_destroy_connection(broker);
        PQfinish(pg);
    }
}
