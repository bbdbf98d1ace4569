#include "server/background.h"

#include <stdlib.h>

#include "base/restored.h"
#include "erasure/cascade.h"
#include "events/receipts.h"
#include "events/relay.h"

struct background {
    const struct leader *leader;
    struct relay *relay;
    struct receipts *receipts;
};

static bool leads(void *context)
{
    const struct background *b = context;
    return leader_is_me(b->leader) && !restored_may_be();
}

static enum err apply_receipt(void *context, struct pg *pg, const struct receipt *r, int64_t deadline_ns)
{
    (void)context;
    return cascade_receive(pg, r->customer_id, r->participant, r->done, r->rows, r->error, REPORTED_BY_SERVICE,
                           deadline_ns);
}

enum err background_start(const struct background_config *config, struct background **ret, struct why *why)
{
    *ret = NULL;
    const char *amqp_url = config->settings->amqp_url;
    if (!amqp_url)
        return OK;
    struct background *b = calloc(1, sizeof *b);
    if (!b)
        return why_set(why, ERR_MEMORY, "no memory for the relay");
    b->leader = config->leader;
    struct relay_config relay = {amqp_url, config->direct_url, leads, b};
    struct receipts_config receipts = {.amqp_url = amqp_url,
                                       .database_url = config->url,
                                       .prepare = config->settings->prepare,
                                       .apply = apply_receipt};
    if (!(b->relay = relay_start(&relay, why)) || !(b->receipts = receipts_start(&receipts, why))) {
        background_stop(b);
        return ERR_SYSTEM;
    }
    *ret = b;
    return OK;
}

void background_stop(struct background *b)
{
    if (!b)
        return;
    receipts_stop(b->receipts);
    relay_stop(b->relay);
    free(b);
}
