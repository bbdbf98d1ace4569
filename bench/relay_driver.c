/* Publishes events to RabbitMQ as fast as it confirms them, without a database: the peer of the relay benchmark. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "events/broker.h"

#define CONFIRM_NS (30 * NS_PER_S)

static noreturn void fail(const char *what, const char *why)
{
    fprintf(stderr, "relay_driver: %s: %s\n", what, why);
    exit(1);
}

static void publish(struct broker *b, const char *body, int64_t count)
{
    static enum publish_result results[BROKER_BATCH_MAX];
    struct why why = {""};
    char id[37];
    random_uuid(id);
    for (int64_t i = 0; i < count; i++) {
        snprintf(id + 28, sizeof id - 28, "%08" PRIx32, (uint32_t)i);
        struct broker_message m = {.exchange = EVENTS_EXCHANGE,
                                   .key = "customer_frozen",
                                   .content_type = "application/cloudevents+json; charset=utf-8",
                                   .type = "customer_frozen",
                                   .id = id,
                                   .body = str_of(body)};
        if (broker_publish(b, &m, &why))
            fail("publishing", why.text);
    }
    if (broker_await_confirms(b, results, (size_t)count, CONFIRM_NS, &why))
        fail("confirms", why.text);
    for (int64_t i = 0; i < count; i++)
        if (results[i] != PUBLISH_CONFIRMED)
            fail("confirms", "an event was returned or refused");
}

int main(int argc, char **argv)
{
    int64_t events, bytes;
    if (argc != 4 || str_to_i64(str_of(argv[2]), 1, 100000000, &events) ||
        str_to_i64(str_of(argv[3]), 1, 100000, &bytes))
        fail("usage", "relay_driver URL EVENTS BYTES");
    struct why why = {""};
    char *body = calloc(1, (size_t)bytes + 1);
    AUTO(broker) struct broker *b = broker_new(argv[1], &why);
    if (!body || !b || broker_connect(b, &why))
        fail("connecting", why.text);
    memset(body, 'x', (size_t)bytes);
    publish(b, body, events < BROKER_BATCH_MAX ? events : BROKER_BATCH_MAX); /* warm */
    int64_t began_ns = clock_ns();
    for (int64_t left = events; left > 0; left -= BROKER_BATCH_MAX)
        publish(b, body, left < BROKER_BATCH_MAX ? left : BROKER_BATCH_MAX);
    printf("{\"per_second\":%.1f}\n", (double)events * 1e9 / (double)(clock_ns() - began_ns));
    free(body);
    return 0;
}
