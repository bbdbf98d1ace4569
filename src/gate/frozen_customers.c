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
#include "base/restored.h"
#include "base/stop.h"

#define CONNECT_NS (5 * NS_PER_S)
#define READ_NS (5 * NS_PER_S)
#define WAKE_MIN_NS (10 * NS_PER_MS) /* between reads, at any rate of notifications */
#define READ_MIN_NS (20 * NS_PER_MS)
#define PAGE 10000
#define SNAPSHOT_SIZE 65536 /* its text lists every running transaction */
#define NEVER INT64_MIN
#define NOTE_MAX 1000
#define NOTE_SLACK_MS 150 /* random delay: instances do not write at the same instant */

METRIC_GAUGE(frozen_count, "reclaim_frozen_customers", "Frozen customers in memory.");
METRIC_GAUGE(frozen_bytes, "reclaim_frozen_bytes", "Size of the table of frozen customers, in bytes.");
METRIC_GAUGE(
    frozen_age, "reclaim_frozen_age_seconds",
    "Seconds since the start of the last completed read of changed customers; above 0.1 the gate asks the database.");
METRIC_GAUGE(clock_ahead, "reclaim_clock_shift_seconds",
             "By which the installation's clock is ahead of the real time: 0 unless a sandbox has moved it.");
METRIC_COUNTER(frozen_loads, "reclaim_frozen_loads_total", "Full reads of all frozen customers.");

/* cache: frozen */
static const struct backoff reconnecting = {50 * NS_PER_MS, NS_PER_S};

struct frozen_customers {
    struct customer_set *set;
    struct credential_cache *credentials;
    struct pg *pg;
    int stop_fd; /* readable once frozen_customers_stop() is called */
    pthread_t thread;
    _Atomic int64_t began_ns;  /* start of the last completed read; NEVER before the first */
    _Atomic int64_t ahead_us;  /* of the wall clock: reclaim.now() */
    _Atomic uint64_t removals; /* odd while entries are removed from the set and the credential cache */

    /* Used by the thread only: */
    char snapshot[SNAPSHOT_SIZE]; /* the set contains everything visible in it */
    bool outage_logged;
    int64_t installation;              /* the table's oid: another one was put in its place by a restore */
    bool users_are_customers;          /* RECLAIM_CUSTOMERS, as of the last read */
    int64_t note_at_ns;                /* when to set frozen_api_at; NEVER: no row to set */
    bool note_again;                   /* more freezes were read since then */
    int note_limit;                    /* rows in one statement */
    char note_snapshot[SNAPSHOT_SIZE]; /* rows visible in it are to be set */
};

static const struct statement frozen_snapshot = {
    .name = "frozen_snapshot",
    .sql = "SELECT pg_catalog.pg_current_snapshot()::text AS snapshot,"
           " coalesce((SELECT i.tableoid::int8 FROM reclaim.installation i), 0) AS installation",
    .params = 0,
    .columns = "snapshot:text installation:int8",
};

static const struct statement frozen_page = {
    .name = "frozen_page",
    .sql =
        "SELECT c.id, c.frozen_api_at IS NULL AS unnoted, " FREEZE_OF_C
        " FROM reclaim.customer_customers c WHERE c.status = 'frozen' AND c.id > $1::uuid ORDER BY c.id LIMIT $2::int8",
    .params = 2,
    .columns = "id:uuid unnoted:bool " FREEZE_COLUMNS,
};

/* Rows not visible in the last snapshot ($1), after the end of the previous page ($3, $4). Transactions may commit
 * long after their number was assigned, so the largest number read does not suffice. Rows restored from another
 * cluster may have numbers not assigned yet: only the full read finds them. New customers are skipped: no instance
 * has cached them. One id may have several rows in a transaction: a page ends with the last of them.
 *
 * Begins at the first transaction that has ended since the last snapshot, not at its xmin: while a long transaction
 * lasts, what others have committed since it began is not read again and again. */
#define UUID_LAST "ffffffff-ffff-ffff-ffff-ffffffffffff"
#define NOT_SEEN_BEFORE                                                                                                \
    "SELECT (coalesce((SELECT one FROM pg_catalog.pg_snapshot_xip($1::pg_catalog.pg_snapshot) AS one"                  \
    " WHERE pg_catalog.pg_visible_in_snapshot(one, pg_catalog.pg_current_snapshot()) ORDER BY one LIMIT 1),"           \
    " pg_catalog.pg_snapshot_xmax($1::pg_catalog.pg_snapshot))::text::int8 - 1)::text::xid8 AS xid"
#define START                                                                                                          \
    "start AS MATERIALIZED (SELECT greatest($3::xid8, seen.xid) AS xid,"                                               \
    " CASE WHEN $3::xid8 >= seen.xid THEN $4::uuid ELSE '" UUID_LAST "'::uuid END AS id FROM (" NOT_SEEN_BEFORE        \
    ") AS seen) "
#define UNSEEN(one)                                                                                                    \
    "(" one ".changed_xid, " one ".id) > ((SELECT xid FROM start), (SELECT id FROM start))"                            \
    " AND " one ".changed_xid < pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot())"                         \
    " AND NOT pg_catalog.pg_visible_in_snapshot(" one ".changed_xid, $1::pg_catalog.pg_snapshot)"
#define IN_ORDER " ORDER BY changed_xid, id FETCH FIRST ($2::int8) ROWS WITH TIES"
#define CHANGED_CUSTOMERS                                                                                              \
    "SELECT c.status::text AS what, c.id, c.changed_xid, c.frozen_api_at IS NULL AS unnoted, " FREEZE_OF_C             \
    " FROM reclaim.customer_customers c"                                                                               \
    " WHERE NOT (c.status = 'active' AND c.version = 1) AND " UNSEEN("c") IN_ORDER
#define REVOKED_KEYS                                                                                                   \
    "SELECT 'key', k.id, k.changed_xid, false, 0, 0, false, false FROM reclaim.access_keys k"                          \
    " WHERE k.revoked_at IS NOT NULL AND " UNSEEN("k") IN_ORDER
#define ENDED                                                                                                          \
    "SELECT e.kind, e.id, e.changed_xid, false, 0, 0, false, false FROM reclaim.gate_ended e"                          \
    " WHERE " UNSEEN("e") IN_ORDER

static const struct statement frozen_changes = {
    .name = "frozen_changes",
    .sql = "WITH " START "SELECT pg_catalog.pg_current_snapshot()::text AS snapshot, change.what, change.id,"
           " change.changed_xid::text AS place, change.unnoted, change.scheduled_us, change.effective_us,"
           " change.by_admin, change.held,"
           " (extract(epoch FROM pg_catalog.clock_timestamp() + always.clock_shift) * 1000000)::bigint AS now_us,"
           " (extract(epoch FROM always.clock_shift) * 1000000)::bigint AS shift_us, always.sandbox, always.users, "
           "always.restored, always.installation"
           " FROM (SELECT i.tableoid::int8 AS installation, i.clock_shift, i.sandbox, i.customers = 'users' AS users, "
           "i.restored_at IS NOT NULL AS restored"
           " FROM reclaim.installation i) AS always LEFT JOIN (SELECT * FROM"
           " ((" CHANGED_CUSTOMERS ") UNION ALL (" REVOKED_KEYS ") UNION ALL (" ENDED ")) AS any_of_them" IN_ORDER
           ") AS change ON true ORDER BY change.changed_xid, change.id",
    .params = 4,
    .columns = "snapshot:text what:text id:uuid place:text unnoted:bool " FREEZE_COLUMNS
               " now_us:int8 shift_us:int8 sandbox:bool users:bool restored:bool installation:int8",
};

/* Sets frozen_api_at for freezes committed a lease ago, which every instance has read; repeated while rows are left.
 * Does not wait for row locks: it fails, and is retried with fewer rows, chosen at random. Looks rows up by id, so
 * that its plan is good with statistics from before a million freezes. */
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

/* No plans that depend on statistics, since the table can grow by a million rows between two ANALYZE; a
 * frozen_api_at lost in a crash is set again. */
static const char session[] = "SET enable_seqscan = off; SET jit = off; SET plan_cache_mode = force_generic_plan;"
                              "SET synchronous_commit = off; LISTEN reclaim_customers;";

/* --- reading --- */

static enum err keep_snapshot(struct frozen_customers *f, struct str snapshot)
{
    return str_copy(snapshot, f->snapshot, sizeof f->snapshot);
}

/* Schedules setting frozen_api_at one lease from now, when every instance has read this snapshot or a later one. */
static void schedule_note(struct frozen_customers *f)
{
    f->note_again = f->note_at_ns != NEVER;
    if (f->note_again)
        return;
    f->note_at_ns = clock_ns() + FROZEN_LEASE_NS + (int64_t)random_below(NOTE_SLACK_MS) * NS_PER_MS;
    memcpy(f->note_snapshot, f->snapshot, strlen(f->snapshot) + 1);
}

struct freeze freeze_read(const struct pg_call *rows, int row, int column)
{
    uint64_t effective_us = (uint64_t)pg_get_i64(rows, row, column + 1);
    return (struct freeze){.scheduled_us = pg_get_i64(rows, row, column),
                           .effective_us = effective_us & FREEZE_US_MAX,
                           .by_admin = pg_get_bool(rows, row, column + 2),
                           .held = pg_get_bool(rows, row, column + 3)};
}

static enum err put_page(struct customer_set *into, const struct pg_call *page, bool *unnoted)
{
    enum err e = OK;
    for (int i = 0; i < page->rows && !e; i++) {
        struct customer_id id;
        if (!(e = customer_id_parse(pg_get(page, i, 0), &id)))
            e = customer_set_put(into, id, freeze_read(page, i, 2));
        *unnoted |= pg_get_bool(page, i, 1);
    }
    return e;
}

static enum err load_into(struct frozen_customers *f, struct customer_set *fresh, bool *unnoted)
{
    struct pg_call first = {.ask = &frozen_snapshot};
    enum err e = pg_ask(f->pg, &first, clock_ns() + READ_NS);
    if (e || (e = keep_snapshot(f, pg_get(&first, 0, 0))))
        return e;
    f->installation = pg_get_i64(&first, 0, 1);
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

/* Reads all frozen customers page by page; changes made meanwhile are not visible in the snapshot taken first and
 * come with the next read. Clears the credential cache, since changes may have been missed. */
static enum err load(struct frozen_customers *f)
{
    struct customer_set *fresh = customer_set_new();
    bool unnoted = false;
    enum err e = fresh ? load_into(f, fresh, &unnoted) : ERR_MEMORY;
    if (!e) {
        atomic_fetch_add(&f->removals, 1);
        credential_cache_remove(f->credentials, NULL);
        customer_set_swap(f->set, fresh);
        atomic_fetch_add(&f->removals, 1);
        counter_add(&frozen_loads, 1);
        if (unnoted)
            schedule_note(f);
    }
    customer_set_free(fresh);
    return e;
}

/* Which set a change belongs to: any state but frozen ends what was known of a customer. */
static enum ended_kind kind_of(struct str what)
{
    return str_eq(what, STR("key"))       ? ENDED_KEY
           : str_eq(what, STR("user"))    ? ENDED_USER
           : str_eq(what, STR("session")) ? ENDED_SESSION
                                          : ENDED_CUSTOMER;
}

static bool is_freeze(const struct pg_call *changes, int row)
{
    return str_eq(pg_get(changes, row, 1), STR("frozen"));
}

/* Collects all but the freezes. */
static enum err collect_ended(const struct pg_call *changes, struct customer_set *const ended[ENDED_KINDS], bool *found)
{
    enum err e = OK;
    for (int i = 0; i < changes->rows && !e; i++) {
        struct customer_id id;
        if (is_freeze(changes, i))
            continue;
        *found = true;
        if (!(e = customer_id_parse(pg_get(changes, i, 2), &id)))
            e = customer_set_add(ended[kind_of(pg_get(changes, i, 1))], id);
    }
    return e;
}

/* Removes cached credentials first, then the freezes of customers. Concurrent look-ups see `removals` change. */
static void remove_ended(struct frozen_customers *f, const struct pg_call *changes,
                         struct customer_set *const ended[ENDED_KINDS])
{
    atomic_fetch_add(&f->removals, 1);
    credential_cache_remove(f->credentials, ended);
    for (int i = 0; i < changes->rows; i++) {
        struct customer_id id;
        if (!customer_id_parse(pg_get(changes, i, 2), &id) && customer_set_has(ended[ENDED_CUSTOMER], id))
            customer_set_remove(f->set, id);
    }
    atomic_fetch_add(&f->removals, 1);
}

/* After the removals: a row that was deleted and inserted again, frozen, has a tombstone and a freeze. */
static enum err put_freezes(struct frozen_customers *f, const struct pg_call *changes, bool *unnoted)
{
    enum err e = OK;
    for (int i = 0; i < changes->rows && !e; i++) {
        struct customer_id id;
        if (!is_freeze(changes, i))
            continue;
        if (!(e = customer_id_parse(pg_get(changes, i, 2), &id)))
            e = customer_set_put(f->set, id, freeze_read(changes, i, 5));
        *unnoted |= pg_get_bool(changes, i, 4);
    }
    return e;
}

static enum err apply_page(struct frozen_customers *f, const struct pg_call *changes, bool *unnoted)
{
    struct customer_set *ended[ENDED_KINDS];
    bool found = false;
    enum err e = OK;
    for (int kind = 0; kind < ENDED_KINDS; kind++)
        if (!(ended[kind] = customer_set_new()))
            e = ERR_MEMORY;
    if (!e)
        e = collect_ended(changes, ended, &found);
    if (!e && found)
        remove_ended(f, changes, ended);
    if (!e)
        e = put_freezes(f, changes, unnoted);
    for (int kind = 0; kind < ENDED_KINDS; kind++)
        customer_set_free(ended[kind]);
    return e;
}

struct page_end { /* where a page of changes ended */
    char xid[24], id[37];
};

static enum err page_end_at_last(const struct pg_call *changes, struct page_end *ret)
{
    int last = changes->rows - 1;
    enum err e = str_copy(pg_get(changes, last, 3), ret->xid, sizeof ret->xid);
    return e ? e : str_copy(pg_get(changes, last, 2), ret->id, sizeof ret->id);
}

/* Whom a token leads to depends on where customers come from. */
static void note_where_from(struct frozen_customers *f, bool users_are_customers)
{
    if (users_are_customers == f->users_are_customers)
        return;
    f->users_are_customers = users_are_customers;
    atomic_fetch_add(&f->removals, 1);
    credential_cache_remove(f->credentials, NULL);
    atomic_fetch_add(&f->removals, 1);
}

/* Reads everything not visible in the previous snapshot. Rows that change between two pages come with a later page
 * or the next read, since the first page's snapshot is kept. */
static enum err read_changes(struct frozen_customers *f)
{
    struct page_end after = {"0", UUID_NIL};
    char first_snapshot[SNAPSHOT_SIZE] = "";
    bool unnoted = false, more = true;
    int64_t began_ns = clock_ns();
    while (more) {
        struct pg_call changes = {
            .ask = &frozen_changes,
            .args = {pg_text(f->snapshot), pg_i64(PAGE), pg_text(after.xid), pg_text(after.id)},
        };
        enum err e = pg_ask(f->pg, &changes, clock_ns() + READ_NS);
        if (!e && (changes.rows == 0 || pg_get_i64(&changes, 0, 14) != f->installation))
            e = ERR_MISSING;
        if (!e && !pg_is_null(&changes, 0, 1))
            e = apply_page(f, &changes, &unnoted);
        more = changes.rows >= PAGE;
        if (!e && more)
            e = page_end_at_last(&changes, &after);
        if (!e && !*first_snapshot)
            e = str_copy(pg_get(&changes, 0, 0), first_snapshot, sizeof first_snapshot);
        if (e)
            return e;
        atomic_store(&f->ahead_us, pg_get_i64(&changes, 0, 9) - clock_wall_us());
        clock_note_sandbox(pg_get_bool(&changes, 0, 11), pg_get_i64(&changes, 0, 10));
        note_where_from(f, pg_get_bool(&changes, 0, 12));
        restored_note(pg_get_bool(&changes, 0, 13));
        gauge_set(&clock_ahead, (double)clock_sandbox_shift_ms() / 1000);
    }
    memcpy(f->snapshot, first_snapshot, strlen(first_snapshot) + 1);
    atomic_store(&f->began_ns, began_ns);
    if (unnoted)
        schedule_note(f);
    return OK;
}

static enum err set_frozen_api_at(struct frozen_customers *f)
{
    struct pg_call call = {.ask = &frozen_note, .args = {pg_text(f->note_snapshot), pg_i64(f->note_limit)}};
    enum err e = pg_ask(f->pg, &call, clock_ns() + READ_NS);
    bool locked = e == ERR_DATABASE && !strcmp(call.sqlstate, "55P03");
    f->note_at_ns = NEVER;
    f->note_limit = locked ? (f->note_limit + 1) / 2 : f->note_limit * 2 < NOTE_MAX ? f->note_limit * 2 : NOTE_MAX;
    if (locked || (!e && (f->note_again || pg_get_bool(&call, 0, 1))))
        schedule_note(f);
    return locked ? OK : e;
}

/* --- the thread --- */

static enum err connect_and_load(struct frozen_customers *f, struct why *why)
{
    int64_t deadline_ns = clock_ns() + CONNECT_NS;
    f->note_at_ns = NEVER;
    f->note_limit = NOTE_MAX;
    enum err e = pg_connect(f->pg, deadline_ns, why);
    if (e)
        return e;
    if (pg_is_pooled(f->pg))
        return why_set(why, ERR_INPUT,
                       "the connection goes through a transaction pooler: set RECLAIM_DATABASE_DIRECT_URL");
    if ((e = pg_script(f->pg, session, deadline_ns, why)))
        return e;
    if ((e = load(f)))
        return why_set(why, e, "the frozen customers could not be read: %s", err_name(e));
    return OK;
}

/* Waits for the next read or a notification; false on stop. If reads are slow, the next one begins sooner, to be
 * completed before the lease of the last expires. */
static bool wait_for_next(struct frozen_customers *f, int64_t began_ns, int64_t took_ns)
{
    int64_t next_ns = began_ns + FROZEN_READ_EVERY_NS - 2 * took_ns;
    if (next_ns < began_ns + READ_MIN_NS)
        next_ns = began_ns + READ_MIN_NS; /* limits the load on a busy machine */
    struct pollfd on[2] = {{.fd = f->stop_fd, .events = POLLIN}, {.fd = pg_socket(f->pg), .events = POLLIN}};
    if (poll(on, 2, clock_ms_until(next_ns, 50)) > 0 && on[0].revents)
        return false;
    return !stop_wait(f->stop_fd, clock_ms_until(began_ns + WAKE_MIN_NS, 50));
}

/* Returns true if the connection is lost, or its database is no longer the one that was loaded; false on stop. */
static bool follow_changes(struct frozen_customers *f, struct why *why)
{
    for (;;) {
        int64_t began_ns = clock_ns();
        enum err e = read_changes(f);
        int64_t took_ns = clock_ns() - began_ns;
        if (!e && f->note_at_ns != NEVER && clock_ns() >= f->note_at_ns)
            e = set_frozen_api_at(f);
        if (e && e != ERR_CONFLICT) {
            (void)why_set(why, e, "%s", e == ERR_MISSING ? "the database was replaced in place" : err_name(e));
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
        enum err e = connect_and_load(f, &why);
        bool lost = e != OK;
        if (!e) {
            f->outage_logged = false;
            log_info("frozen customers loaded", F_INT("frozen", (int64_t)customer_set_count(f->set)));
            lost = follow_changes(f, &why);
            restored_doubt(); /* what is there next may be another database */
        }
        if (lost && !f->outage_logged && !stop_is_raised(f->stop_fd)) {
            log_warn("customer changes cannot be read: the gate asks the database instead", F_STR("reason", why.text));
            f->outage_logged = true;
        }
        pg_disconnect(f->pg);
        bool was_stable = !e && clock_ns() - began_ns > NS_PER_S;
        failures = was_stable ? 0 : failures + 1;
    }
    return NULL;
}

/* --- look-ups --- */

uint64_t frozen_customers_mark(struct frozen_customers *f)
{
    return atomic_load(&f->removals);
}

enum frozen_answer frozen_customers_find(struct frozen_customers *f, uint64_t mark, struct customer_id id,
                                         int64_t now_ns, struct freeze *ret)
{
    int64_t began_ns = atomic_load(&f->began_ns);
    if (began_ns == NEVER || now_ns - began_ns >= FROZEN_LEASE_NS)
        return FROZEN_UNSURE;
    if (customer_set_find(f->set, id, ret))
        return FROZEN_IS;
    return mark % 2 || atomic_load(&f->removals) != mark ? FROZEN_UNSURE : FROZEN_NOT;
}

int64_t frozen_customers_now_us(struct frozen_customers *f)
{
    return clock_wall_us() + atomic_load(&f->ahead_us);
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

static void free_frozen(struct frozen_customers *f)
{
    pg_free(f->pg);
    customer_set_free(f->set);
    stop_free(f->stop_fd);
    free(f);
}

struct frozen_customers *frozen_customers_start(const char *direct_url, struct credential_cache *credentials,
                                                struct pg_pulse *pulse, struct why *why)
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
    if (f->pg) {
        pg_give_up_when(f->pg, f->stop_fd);
        pg_report_pulse(f->pg, pulse);
    }
    if (!f->pg || !f->set || f->stop_fd < 0 || pthread_create(&f->thread, NULL, run, f) != 0) {
        (void)why_set(why, ERR_SYSTEM, "no memory, descriptor or thread for the frozen customers");
        free_frozen(f);
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
    free_frozen(f);
}
