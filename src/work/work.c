/* Items: inserted by a flow's transaction, handed to the engine, leased. */
#include "work/work.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "work/inside.h"

const struct statement work_insert = {
    .name = "work_insert",
    .sql = "INSERT INTO reclaim.work_items (kind, payload, tries, leased_by, leased_until)"
           " VALUES ($1, $2::jsonb, 1, $3, pg_catalog.clock_timestamp() + $4::int8 * interval '1 microsecond')"
           " RETURNING id",
    .params = 4,
    .columns = "id:int8",
};

const struct statement work_insert_free = {
    .name = "work_insert_free",
    .sql = "INSERT INTO reclaim.work_items (kind, payload) VALUES ($1, $2::jsonb) RETURNING id",
    .params = 2,
    .columns = "id:int8",
};

static const struct statement prune_dead = {
    .name = "work_prune_dead",
    .sql = "DELETE FROM reclaim.work_items WHERE state = 'dead' AND kind = $1"
           " AND updated_at < pg_catalog.now() - $2::int8 * interval '1 millisecond'",
    .params = 2,
    .columns = "",
};

const struct statement work_redrive = {
    .name = "work_redrive",
    .sql = "UPDATE reclaim.work_items SET state = 'open', tries = 0, due_at = pg_catalog.clock_timestamp(),"
           " updated_at = pg_catalog.clock_timestamp() WHERE id = $1::int8 AND state = 'dead'"
           " RETURNING kind, payload ->> 'customer_id' AS customer",
    .params = 1,
    .columns = "kind:text customer:text",
};

const struct statement *const work_statements[] = {&work_insert, &work_insert_free, &work_delete,
                                                   &work_change, &work_renew,       &work_claim,
                                                   &work_census, &prune_dead,       &work_redrive};
const size_t work_statement_count = COUNT_OF(work_statements);

struct work_item *item_new(struct engine *engine, const struct work_kind *kind, struct str payload)
{
    struct work_item *item = calloc(1, sizeof *item + payload.len + 1);
    if (!item)
        return NULL;
    item->engine = engine;
    item->kind = kind;
    item->tries = 1;
    memcpy(item->bytes, payload.at, payload.len);
    item->payload = (struct str){item->bytes, payload.len};
    return item;
}

void item_free(struct work_item *item)
{
    if (item->handed && item->kind->forget)
        item->kind->forget(item->handed);
    secret_wipe(item->bytes, item->payload.len);
    free(item);
}

void work_item_cleanup(struct work_item **item)
{
    if (*item)
        item_free(*item);
    *item = NULL;
}

/* The lease begins before the statement is sent, so it expires here before it does in the table. */
struct work_item *work_promise(struct engine *engine, const struct work_kind *kind, const char *payload,
                               struct pg_call *ret_insert)
{
    struct str text = str_of(payload);
    struct work_item *item = text.len <= WORK_PAYLOAD_MAX ? item_new(engine, kind, text) : NULL;
    if (!item)
        return NULL;
    atomic_store(&item->leased_until_ns, clock_ns() + engine->lease_ns);
    *ret_insert = (struct pg_call){.ask = &work_insert,
                                   .args = {pg_text(kind->name), pg_text(item->bytes), pg_i64(engine->lease_owner),
                                            pg_i64(engine->lease_ns / NS_PER_US)}};
    return item;
}

enum err work_owe(struct engine *engine, const struct work_kind *kind, const char *payload, struct pg_call *ret_insert,
                  struct work_item **ret)
{
    *ret = engine ? work_promise(engine, kind, payload, ret_insert) : NULL;
    if (engine)
        return *ret ? OK : ERR_MEMORY;
    *ret_insert = (struct pg_call){.ask = &work_insert_free, .args = {pg_text(kind->name), pg_text(payload)}};
    return OK;
}

void work_inserted(struct work_item *item, const struct pg_call *insert)
{
    item->id = pg_get_i64(insert, 0, 0);
}

enum work_lease work_lease(const struct work_item *item, int64_t for_ns)
{
    if (atomic_load(&item->lost))
        return WORK_LOST;
    return clock_ns() + for_ns <= atomic_load(&item->leased_until_ns) ? WORK_MINE : WORK_WAIT;
}

void list_add(struct item_list *list, struct work_item *item)
{
    item->next = NULL;
    item->previous = list->last;
    *(list->last ? &list->last->next : &list->first) = item;
    list->last = item;
    list->count++;
}

void list_remove(struct item_list *list, struct work_item *item)
{
    *(item->previous ? &item->previous->next : &list->first) = item->next;
    *(item->next ? &item->next->previous : &list->last) = item->previous;
    item->next = item->previous = NULL;
    list->count--;
}

enum err work_prune_dead(struct pg *pg, const struct work_kind *kind, int64_t retention_ms, int64_t deadline_ns)
{
    struct pg_call call = {.ask = &prune_dead, .args = {pg_text(kind->name), pg_i64(retention_ms)}};
    return pg_ask(pg, &call, deadline_ns);
}
