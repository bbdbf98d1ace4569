#include "gate/frozen_customers.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/random.h"
#include "base/stop.h"

#define CONNECT_NS (5 * NS_PER_S)
#define READ_NS (5 * NS_PER_S)
#define WAKE_LEAST_NS (10 * NS_PER_MS) /* between reads, however many notifications come */
#define READ_LEAST_NS (20 * NS_PER_MS)
#define PAGE 10000
#define SNAPSHOT_ROOM 65536 /* it names every transaction under way */
#define NEVER INT64_MIN
#define NOTE_MOST 1000
#define NOTE_SLACK_MS 150 /* instances do not all note a freeze at the same instant */

METRIC_GAUGE(frozen_count, "reclaim_frozen_customers", "Frozen customers that this instance has in memory.");
METRIC_GAUGE(frozen_bytes, "reclaim_frozen_bytes", "Memory of the table of frozen customers.");
METRIC_GAUGE(frozen_age, "reclaim_frozen_age_seconds",
             "Since the last completed read of changed customers began; beyond 0.1 the gate asks the database.");
METRIC_COUNTER(frozen_loads, "reclaim_frozen_loads_total", "Times that all frozen customers were read.");

/* cache: frozen */
static const struct backoff reconnecting = {50 * NS_PER_MS, NS_PER_S};

struct frozen_customers {
    struct customer_set *set;
    struct credential_cache *credentials;
    struct pg *pg;
    int stop_fd; /* readable from frozen_customers_stop on */
    pthread_t thread;
    _Atomic int64_t began_ns; /* the last completed read; NEVER before the first */
    _Atomic uint64_t moves;   /* odd while customers leave the set and what leads to them is forgotten */

    /* The thread's own: */
    char snapshot[SNAPSHOT_ROOM]; /* everything that it shows is in the set */
    bool outage_told;
    int64_t note_at_ns; /* when to write into the customers' rows that this layer has the freeze; NEVER: nothing to */
    bool note_again;    /* more came since */
    int note_most;      /* at once */
    char note_snapshot[SNAPSHOT_ROOM]; /* shows the freezes that are meant */
};

static const struct statement frozen_snapshot = {
    .name = "frozen_snapshot",
    .sql = "SELECT pg_catalog.pg_current_snapshot()::text AS snapshot",
    .params = 0,
    .columns = "snapshot:text",
};

#define SCHEDULED_US "(extract(epoch FROM c.tm_deletion_scheduled) * 1000000)::bigint"

static const struct statement frozen_page = {
    .name = "frozen_page",
    .sql =
        "SELECT c.id, " SCHEDULED_US " AS scheduled_us, c.frozen_api_at IS NULL AS unnoted"
        " FROM reclaim.customer_customers c WHERE c.status = 'frozen' AND c.id > $1::uuid ORDER BY c.id LIMIT $2::int8",
    .params = 2,
    .columns = "id:uuid scheduled_us:int8 unnoted:bool",
};

/* What the last snapshot ($1) did not show yet, behind a place ($3, $4). Transactions may commit long after they took their
 * number, so it is not enough to remember the largest. Rows restored from another cluster may bear numbers that are still to
 * come: the full read has them. A customer that was only just made is in nobody's memory. */
#define UNSEEN(one)                                                                                                    \
    "(" one ".changed_xid, " one ".id) > ($3::xid8, $4::uuid)"                                                         \
    " AND " one ".changed_xid < pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot())"                         \
    " AND NOT pg_catalog.pg_visible_in_snapshot(" one ".changed_xid, $1::pg_catalog.pg_snapshot)"
#define IN_ORDER " ORDER BY changed_xid, id LIMIT $2::int8"
#define CHANGED_CUSTOMERS                                                                                              \
    "SELECT c.status::text AS what, c.id, " SCHEDULED_US " AS scheduled_us, c.frozen_api_at IS NULL AS unnoted,"       \
    " c.changed_xid FROM reclaim.customer_customers c"                                                                 \
    " WHERE NOT (c.status = 'active' AND c.version = 1) AND " UNSEEN("c") IN_ORDER
#define REVOKED_KEYS                                                                                                   \
    "SELECT 'key', k.id, 0, false, k.changed_xid FROM reclaim.access_keys k"                                           \
    " WHERE k.revoked_at IS NOT NULL AND " UNSEEN("k") IN_ORDER

static const struct statement frozen_changes = {
    .name = "frozen_changes",
    .sql = "SELECT pg_catalog.pg_current_snapshot()::text AS snapshot, change.what, change.id, change.scheduled_us,"
           " change.unnoted, change.changed_xid::text AS place FROM (SELECT 1) AS always LEFT JOIN (SELECT * FROM"
           " ((" CHANGED_CUSTOMERS ") UNION ALL (" REVOKED_KEYS ")) AS either" IN_ORDER ") AS change ON true"
           " ORDER BY change.changed_xid, change.id",
    .params = 4,
    .columns = "snapshot:text what:text id:uuid scheduled_us:int8 unnoted:bool place:text",
};

/* Freezes that were committed a lease ago: every instance has them. As long as this found any, it is done again. Nobody
 * who changes a row right now is waited for: then it fails, and a smaller choice is tried, another one by chance. Written so
 * that no statistics of before a million freezes lead astray: one choice of ids, looked up by id. */
static const struct statement frozen_note = {
    .name = "frozen_note",
    .sql = "WITH near AS (SELECT c.id FROM reclaim.customer_customers c"
           " WHERE c.status = 'frozen' AND c.frozen_api_at IS NULL"
           " AND pg_catalog.pg_visible_in_snapshot(c.changed_xid, $1::pg_catalog.pg_snapshot)"
           " ORDER BY c.changed_xid LIMIT 10 * $2::int8)"
           ", due AS (SELECT c.id, c.status, c.frozen_api_at FROM reclaim.customer_customers c WHERE c.id = ANY"
           " (ARRAY(SELECT id FROM near ORDER BY pg_catalog.random() LIMIT $2::int8)) FOR UPDATE NOWAIT)"
           ", done AS (UPDATE reclaim.customer_customers c SET frozen_api_at = (SELECT reclaim.now()) FROM due"
           " WHERE c.id = due.id AND due.status = 'frozen' AND due.frozen_api_at IS NULL RETURNING 1)"
           " SELECT (SELECT count(*) FROM done) AS noted, EXISTS (SELECT FROM reclaim.customer_customers c"
           " WHERE c.status = 'frozen' AND c.frozen_api_at IS NULL) AS found",
    .params = 2,
    .columns = "noted:int8 found:bool",
};

const struct statement *const frozen_customers_statements[] = {&frozen_snapshot, &frozen_page, &frozen_changes,
                                                               &frozen_note};
const size_t frozen_customers_statement_count = COUNT_OF(frozen_customers_statements);

/* Plans that suit a table which grows by a million between two statistics; a note lost in a crash is written again. */
static const char session[] = "SET enable_seqscan = off; SET jit = off; SET plan_cache_mode = force_generic_plan;"
                              "SET synchronous_commit = off; LISTEN reclaim_customers;";

/* --- reading --- */

static enum err remember(struct frozen_customers *f, struct str snapshot)
{
    return str_copy(snapshot, f->snapshot, sizeof f->snapshot);
}

/* Somebody's freeze is not noted in his row yet: once every instance has this snapshot, or a later one, it will be. */
static void note_later(struct frozen_customers *f)
{
    f->note_again = f->note_at_ns != NEVER;
    if (f->note_again)
        return;
    f->note_at_ns = clock_ns() + FROZEN_LEASE_NS + (int64_t)random_below(NOTE_SLACK_MS) * NS_PER_MS;
    memcpy(f->note_snapshot, f->snapshot, strlen(f->snapshot) + 1);
}

static enum err put_page(struct customer_set *into, const struct pg_call *page, bool *unnoted)
{
    enum err e = OK;
    for (int i = 0; i < page->rows && !e; i++) {
        struct customer_id id;
        if (!(e = customer_id_parse(pg_get(page, i, 0), &id)))
            e = customer_set_put(into, id, pg_get_i64(page, i, 1));
        *unnoted |= pg_get_bool(page, i, 2);
    }
    return e;
}

static enum err load_into(struct frozen_customers *f, struct customer_set *fresh, bool *unnoted)
{
    struct pg_call first = {.ask = &frozen_snapshot};
    enum err e = pg_ask(f->pg, &first, clock_ns() + READ_NS);
    if (e || (e = remember(f, pg_get(&first, 0, 0))))
        return e;
    char after[37] = UUID_NIL;
    for (struct pg_call page = {.rows = PAGE}; page.rows == PAGE;) {
        page = (struct pg_call){.ask = &frozen_page, .args = {pg_text(after), pg_i64(PAGE)}};
        if ((e = pg_ask(f->pg, &page, clock_ns() + READ_NS)) || (e = put_page(fresh, &page, unnoted)))
            return e;
        if (page.rows && (e = str_copy(pg_get(&page, page.rows - 1, 0), after, sizeof after)))
            return e;
    }
    return OK;
}

/* All of them, page by page; what changes meanwhile comes with the changes since the snapshot taken first. What led to
 * whom may have changed unheard: all of that is forgotten. */
static enum err load(struct frozen_customers *f)
{
    struct customer_set *fresh = customer_set_new();
    bool unnoted = false;
    enum err e = fresh ? load_into(f, fresh, &unnoted) : ERR_MEMORY;
    if (!e) {
        atomic_fetch_add(&f->moves, 1);
        credential_cache_remove(f->credentials, NULL, NULL);
        customer_set_swap(f->set, fresh);
        atomic_fetch_add(&f->moves, 1);
        counter_add(&frozen_loads, 1);
        if (unnoted)
            note_later(f);
    }
    customer_set_free(fresh);
    return e;
}

/* A freeze counts at once; others are gathered. */
static enum err take_change(struct frozen_customers *f, const struct pg_call *changes, int row,
                            struct customer_set *customers, struct customer_set *keys)
{
    struct customer_id id;
    struct str what = pg_get(changes, row, 1);
    enum err e = customer_id_parse(pg_get(changes, row, 2), &id);
    if (e)
        return e;
    if (str_eq(what, STR("frozen")))
        return customer_set_put(f->set, id, pg_get_i64(changes, row, 3));
    return customer_set_put(str_eq(what, STR("key")) ? keys : customers, id, 1);
}

/* Customers deleted, recovered or owned by another, and keys revoked: what leads there is forgotten, then the freeze is.
 * Whoever looks while that is being done sees `moves` change. */
static void let_leave(struct frozen_customers *f, const struct pg_call *changes, struct customer_set *customers,
                      struct customer_set *keys)
{
    atomic_fetch_add(&f->moves, 1);
    credential_cache_remove(f->credentials, customers, keys);
    for (int i = 0; i < changes->rows; i++) {
        struct customer_id id;
        int64_t ignored;
        if (!customer_id_parse(pg_get(changes, i, 2), &id) && customer_set_find(customers, id, &ignored))
            customer_set_remove(f->set, id);
    }
    atomic_fetch_add(&f->moves, 1);
}

static enum err apply(struct frozen_customers *f, const struct pg_call *changes, bool *unnoted)
{
    struct customer_set *customers = customer_set_new(), *keys = customer_set_new();
    enum err e = customers && keys ? OK : ERR_MEMORY;
    for (int i = 0; i < changes->rows && !e; i++) {
        e = take_change(f, changes, i, customers, keys);
        *unnoted |= str_eq(pg_get(changes, i, 1), STR("frozen")) && pg_get_bool(changes, i, 4);
    }
    if (!e && (customer_set_count(customers) || customer_set_count(keys)))
        let_leave(f, changes, customers, keys);
    customer_set_free(customers);
    customer_set_free(keys);
    return e;
}

struct page_end { /* where a page of changes ended */
    char xid[24], id[37];
};

/* A snapshot's text begins with the first transaction that it may lack. */
static struct page_end place_before(const char *snapshot)
{
    struct page_end ret = {"0", "ffffffff-ffff-ffff-ffff-ffffffffffff"};
    unsigned long long first = strtoull(snapshot, NULL, 10);
    (void)snprintf(ret.xid, sizeof ret.xid, "%llu", first ? first - 1 : 0);
    return ret;
}

static enum err place_of_last(const struct pg_call *changes, struct page_end *ret)
{
    int last = changes->rows - 1;
    enum err e = str_copy(pg_get(changes, last, 5), ret->xid, sizeof ret->xid);
    return e ? e : str_copy(pg_get(changes, last, 2), ret->id, sizeof ret->id);
}

/* Everything that the snapshot before did not show. Rows that change between two pages move to a later place, or come with
 * the next read: the snapshot that is remembered is the first page's. */
static enum err read_changes(struct frozen_customers *f)
{
    struct page_end after = place_before(f->snapshot);
    char shown[SNAPSHOT_ROOM] = "";
    bool unnoted = false, more = true;
    int64_t began_ns = clock_ns();
    while (more) {
        struct pg_call changes = {
            .ask = &frozen_changes,
            .args = {pg_text(f->snapshot), pg_i64(PAGE), pg_text(after.xid), pg_text(after.id)},
        };
        enum err e = pg_ask(f->pg, &changes, clock_ns() + READ_NS);
        if (!e && !pg_is_null(&changes, 0, 1))
            e = apply(f, &changes, &unnoted);
        more = changes.rows == PAGE;
        if (!e && more)
            e = place_of_last(&changes, &after);
        if (!e && !*shown)
            e = str_copy(pg_get(&changes, 0, 0), shown, sizeof shown);
        if (e)
            return e;
    }
    memcpy(f->snapshot, shown, strlen(shown) + 1);
    atomic_store(&f->began_ns, began_ns);
    if (unnoted)
        note_later(f);
    return OK;
}

static enum err note(struct frozen_customers *f)
{
    struct pg_call call = {.ask = &frozen_note, .args = {pg_text(f->note_snapshot), pg_i64(f->note_most)}};
    enum err e = pg_ask(f->pg, &call, clock_ns() + READ_NS);
    bool locked = e == ERR_DATABASE && !strcmp(call.sqlstate, "55P03");
    f->note_at_ns = NEVER;
    f->note_most = locked ? (f->note_most + 1) / 2 : f->note_most * 2 < NOTE_MOST ? f->note_most * 2 : NOTE_MOST;
    if (locked || (!e && (f->note_again || pg_get_bool(&call, 0, 1))))
        note_later(f);
    return locked ? OK : e;
}

/* --- the thread --- */

static enum err begin(struct frozen_customers *f, struct why *why)
{
    int64_t deadline_ns = clock_ns() + CONNECT_NS;
    f->note_at_ns = NEVER;
    f->note_most = NOTE_MOST;
    enum err e = pg_connect(f->pg, deadline_ns, why);
    if (e)
        return e;
    if (pg_is_pooled(f->pg))
        return why_set(why, ERR_INPUT, "a transaction pooler stands between: set RECLAIM_DATABASE_DIRECT_URL");
    if ((e = pg_script(f->pg, session, deadline_ns, why)))
        return e;
    if ((e = load(f)))
        return why_set(why, e, "the frozen customers could not be read: %s", err_name(e));
    return OK;
}

/* Until it is time for the next read or a notification says that there is something; false when it is time to stop. A
 * busy machine makes reads slow: then they begin sooner, to be completed before the lease of the last runs out. */
static bool wait_for_next(struct frozen_customers *f, int64_t began_ns, int64_t took_ns)
{
    int64_t next_ns = began_ns + FROZEN_READ_EVERY_NS - 2 * took_ns;
    if (next_ns < began_ns + READ_LEAST_NS)
        next_ns = began_ns + READ_LEAST_NS; /* else a busy machine would be kept busy with this */
    struct pollfd on[2] = {{.fd = f->stop_fd, .events = POLLIN}, {.fd = pg_socket(f->pg), .events = POLLIN}};
    if (poll(on, 2, clock_ms_until(next_ns, 50)) > 0 && on[0].revents)
        return false;
    return !stop_wait(f->stop_fd, clock_ms_until(began_ns + WAKE_LEAST_NS, 50));
}

/* Until the connection is lost (true) or it is time to stop (false). */
static bool keep_up(struct frozen_customers *f, struct why *why)
{
    for (;;) {
        int64_t began_ns = clock_ns();
        enum err e = read_changes(f);
        int64_t took_ns = clock_ns() - began_ns;
        if (!e && f->note_at_ns != NEVER && clock_ns() >= f->note_at_ns)
            e = note(f);
        if (e && e != ERR_CONFLICT) {
            (void)why_set(why, e, "%s", err_name(e));
            return true;
        }
        pg_forget_notifications(f->pg);
        if (!wait_for_next(f, began_ns, took_ns))
            return false;
        if (!pg_is_alive(f->pg)) {
            (void)why_set(why, ERR_CLOSED, "the connection ended");
            return true;
        }
    }
}

static void *run(void *context)
{
    struct frozen_customers *f = context;
    int failures = 0;
    while (!stop_wait(f->stop_fd, backoff_jittered_ms(reconnecting, failures))) {
        struct why why = {""};
        int64_t began_ns = clock_ns();
        enum err e = begin(f, &why);
        bool lost = e != OK;
        if (!e) {
            f->outage_told = false;
            log_info("following freezes", F_INT("frozen", (int64_t)customer_set_count(f->set)));
            lost = keep_up(f, &why);
        }
        if (lost && !f->outage_told && !stop_is_raised(f->stop_fd)) {
            log_warn("freezes are not followed: the database is asked instead", F_STR("reason", why.text));
            f->outage_told = true;
        }
        pg_disconnect(f->pg);
        bool lived = !e && clock_ns() - began_ns > NS_PER_S;
        failures = lived ? 0 : failures + 1;
    }
    return NULL;
}

/* --- what others see --- */

uint64_t frozen_customers_mark(struct frozen_customers *f)
{
    return atomic_load(&f->moves);
}

enum frozen_answer frozen_customers_find(struct frozen_customers *f, uint64_t mark, struct customer_id id,
                                         int64_t now_ns, int64_t *ret_scheduled_us)
{
    int64_t began_ns = atomic_load(&f->began_ns);
    if (began_ns == NEVER || now_ns - began_ns >= FROZEN_LEASE_NS)
        return FROZEN_UNSURE;
    if (customer_set_find(f->set, id, ret_scheduled_us))
        return FROZEN_IS;
    return mark % 2 || atomic_load(&f->moves) != mark ? FROZEN_UNSURE : FROZEN_NOT;
}

struct frozen_customers_state frozen_customers_state(struct frozen_customers *f)
{
    int64_t began_ns = atomic_load(&f->began_ns);
    return (struct frozen_customers_state){customer_set_count(f->set), customer_set_bytes(f->set),
                                           began_ns == NEVER ? INT64_MAX : clock_ns() - began_ns};
}

static double read_count(void *frozen)
{
    return (double)frozen_customers_state(frozen).count;
}

static double read_bytes(void *frozen)
{
    return (double)frozen_customers_state(frozen).bytes;
}

static double read_age(void *frozen)
{
    int64_t age_ns = frozen_customers_state(frozen).age_ns;
    return age_ns == INT64_MAX ? -1 : (double)age_ns / (double)NS_PER_S;
}

static void let_go(struct frozen_customers *f)
{
    pg_free(f->pg);
    customer_set_free(f->set);
    stop_free(f->stop_fd);
    free(f);
}

struct frozen_customers *frozen_customers_start(const char *direct_url, struct credential_cache *credentials,
                                                struct why *why)
{
    if (pg_check_url(direct_url, why))
        return NULL;
    struct frozen_customers *f = calloc(1, sizeof *f);
    if (!f) {
        (void)why_set(why, ERR_MEMORY, "no memory for the frozen customers");
        return NULL;
    }
    f->credentials = credentials;
    f->note_at_ns = NEVER;
    atomic_init(&f->began_ns, NEVER);
    f->stop_fd = stop_new();
    f->set = customer_set_new();
    f->pg = pg_new(direct_url, PG_PREPARE_AUTO);
    if (f->pg)
        pg_give_up_when(f->pg, f->stop_fd);
    if (!f->pg || !f->set || f->stop_fd < 0 || pthread_create(&f->thread, NULL, run, f) != 0) {
        (void)why_set(why, ERR_SYSTEM, "no memory, descriptor or thread for the frozen customers");
        let_go(f);
        return NULL;
    }
    gauge_source(&frozen_count, read_count, f);
    gauge_source(&frozen_bytes, read_bytes, f);
    gauge_source(&frozen_age, read_age, f);
    return f;
}

void frozen_customers_stop(struct frozen_customers *f)
{
    if (!f)
        return;
    gauge_source(&frozen_count, NULL, NULL);
    gauge_source(&frozen_bytes, NULL, NULL);
    gauge_source(&frozen_age, NULL, NULL);
    stop_raise(f->stop_fd);
    pthread_join(f->thread, NULL);
    let_go(f);
}
