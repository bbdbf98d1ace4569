#include "customers/anonymise.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "customers/delete.h"
#include "customers/statements.h"
#include "pg/arrays.h"
#include "pg/tx.h"

#define TRIES_MAX 30
#define PAUSE_FIRST_NS NS_PER_S
#define PAUSE_MOST_NS (600 * NS_PER_S)

const struct statement anonymise_read = {
    .name = "anonymise_read",
    .sql = "SELECT c.status::text AS status, " CUSTOMER_ADDRESS " AS email,"
           " EXISTS (SELECT FROM reclaim.erasures e WHERE e.customer_id = c.id AND e.cleared) AS cleared"
           " FROM reclaim.customer_customers c"
           " LEFT JOIN auth.users u ON u.id = c.owner_user_id WHERE c.id = $1::uuid FOR UPDATE OF c",
    .params = 1,
    .columns = "status:text email:text cleared:bool",
};

const struct statement anonymise_clear = {
    .name = "anonymise_clear",
    .sql = "SELECT reclaim.clear_customers($1::uuid[], $2::text[], $3::uuid[]) AS cleared"
           " FROM (SELECT reclaim.change_by('system', NULL, NULL)) AS actor",
    .params = 3,
    .columns = "cleared:int4",
};

struct forgotten { /* whom a work item is about */
    const char *customer_id;
    const char *owner; /* of a row that is gone; NULL otherwise */
};

static enum err clear(struct customers *customers, struct pg *pg, const struct forgotten *who, int64_t deadline_ns)
{
    AUTO(buf) struct buf ids = buf_new(64);
    AUTO(buf) struct buf sealed = buf_new(2048);
    AUTO(buf) struct buf owners = buf_new(64);
    AUTO(cooldown_batch) struct cooldown_batch addresses = {0};
    const struct deletion_terms terms = customers_deletion_terms(customers);
    AUTO(tx) struct tx *tx = tx_begin(pg, deadline_ns);
    struct pg_call row = {.ask = &anonymise_read, .args = {pg_text(who->customer_id)}};
    enum err e = tx_trip(tx, &row, 1);
    if (e)
        return e;
    if (row.rows == 1 && !str_eq(pg_get(&row, 0, 0), STR("deleted")))
        return OK; /* inserted again under the same id */
    /* Repeated after a crash: the address is an alias by now, and the last mail is promised. */
    bool mails = row.rows == 1 && !pg_get_bool(&row, 0, 2);
    deletion_add(&terms, who->customer_id, mails ? pg_get(&row, 0, 1) : STR(""), &ids, &sealed);
    if (who->owner)
        array_add_plain(&owners, str_of(who->owner));
    if (!array_end(&ids) || !array_end(&sealed) || !array_end(&owners))
        return ERR_MEMORY;
    if ((e = cooldown_read(terms.cooldown_key, tx, ids.at, owners.at, &addresses)))
        return e;
    struct pg_call calls[2] = {
        {.ask = &anonymise_clear, .args = {pg_text(ids.at), pg_text(sealed.at), pg_text(owners.at)}}};
    e = tx_commit(tx, calls, cooldown_write(&addresses, &calls[1]) ? 2 : 1);
    if (e == ERR_DATABASE)
        log_error("personal data of a deleted customer cannot be cleared", F_STR("customer_id", who->customer_id),
                  F_STR("sqlstate", calls[0].sqlstate));
    return e;
}

static enum err run(struct work_item *item, struct pg *pg, int64_t deadline_ns)
{
    AUTO(json) json_t *payload = json_read_object(item->payload, NULL);
    struct forgotten who = {json_string_value(json_object_get(payload, "customer_id")),
                            json_string_value(json_object_get(payload, "owner_user_id"))};
    if (!str_is_uuid(str_of(who.customer_id)) || (who.owner && !str_is_uuid(str_of(who.owner))))
        return ERR_INPUT;
    return clear(item->kind->context, pg, &who, deadline_ns);
}

struct work_kind anonymise_kind(struct customers *customers)
{
    return (struct work_kind){.name = "anonymise",
                              .tries_max = TRIES_MAX,
                              .pause_first_ns = PAUSE_FIRST_NS,
                              .pause_most_ns = PAUSE_MOST_NS,
                              .context = customers,
                              .run = run};
}
