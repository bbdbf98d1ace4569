/* Consumes receipts from the queue reclaim.receipts, on a thread in every instance. A message is acknowledged after its
 * transaction has committed; one that cannot be applied is moved to reclaim.receipts.dead with the reason. */
#ifndef EVENTS_RECEIPTS_H
#define EVENTS_RECEIPTS_H

#include "events/receipt.h"
#include "pg/pg.h"

struct receipts_config {
    const char *amqp_url, *database_url;
    enum pg_prepare prepare;
    /* Applies the receipt and commits. ERR_MISSING: no such customer or participant. May be called again with the same
     * receipt. */
    enum err (*apply)(void *context, struct pg *pg, const struct receipt *receipt, int64_t deadline_ns);
    void *context;
};

struct receipts;

struct receipts *receipts_start(const struct receipts_config *config, struct why *why) MUST_CHECK;
void receipts_stop(struct receipts *receipts); /* NULL is fine */

#endif
