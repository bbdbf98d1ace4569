#include "gate/frozen_customers.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/metric_value.h"
#include "../pg/server.h"
#include "gate/gate_ended.h"
#include "pg/migrate.h"

#define PATIENCE_NS (60 * NS_PER_S)

static struct server *server;
static struct pg *pg;
static struct credential_cache *credentials;
static struct frozen_customers *frozen;
static struct pg_pulse pulse;

static void start(void)
{
    struct why why = {""};
    frozen = frozen_customers_start(server_url(server), credentials, &pulse, &why);
    assert_non_null(frozen);
}

static int set_up(void **state UNUSED)
{
    const struct schema *schema;
    struct migrate_report report;
    struct why why = {""};
    server = server_start("fsync=off");
    pg = must_connect(server_url(server), PG_PREPARE_OFF);
    assert_int_equal(migrations_embedded(&schema, &why), OK);
    assert_int_equal(migrate_up(pg, schema, clock_ns() + 2 * PATIENCE_NS, &report, &why), OK);
    credentials = credential_cache_new(4096);
    start();
    return 0;
}

static int tear_down(void **state UNUSED)
{
    frozen_customers_stop(frozen);
    credential_cache_free(credentials);
    pg_free(pg);
    server_free(server);
    return 0;
}

static struct customer_id id_number(unsigned n)
{
    struct customer_id id;
    char text[37];
    snprintf(text, sizeof text, "00000000-0000-4000-8000-%012u", n);
    assert_int_equal(customer_id_parse(str_of(text), &id), OK);
    return id;
}

static void run(const char *format, unsigned n, unsigned m)
{
    char sql[512];
    snprintf(sql, sizeof sql, format, n, m);
    must_run(pg, sql);
}

#define ID(n) "('00000000-0000-4000-8000-' || lpad(" n "::text, 12, '0'))::uuid"

/* Customers n to m. */
static void insert_active(unsigned n, unsigned m)
{
    run("INSERT INTO reclaim.customer_customers (id) SELECT " ID("n") " FROM generate_series(%u, %u) AS n", n, m);
}

static void set_status(const char *status, unsigned n, unsigned m)
{
    char sql[512];
    snprintf(sql, sizeof sql,
             "UPDATE reclaim.customer_customers SET status = '%s' WHERE id BETWEEN " ID("%u") " AND " ID("%u"), status,
             n, m);
    must_run(pg, sql);
}

static enum frozen_answer find(unsigned n)
{
    struct freeze at;
    return frozen_customers_find(frozen, frozen_customers_mark(frozen), id_number(n), clock_ns(), &at);
}

static void await_answer(unsigned n, enum frozen_answer wanted)
{
    int64_t end = clock_ns() + PATIENCE_NS;
    while (find(n) != wanted) {
        assert_true(clock_ns() < end);
        nanosleep(&(struct timespec){.tv_nsec = 2 * NS_PER_MS}, NULL);
    }
}

static void freezes_and_recoveries_are_followed(void **state UNUSED)
{
    struct freeze at = {.scheduled_us = 0};
    insert_active(1, 2);
    await_answer(1, FROZEN_NOT);
    set_status("frozen", 1, 1);
    await_answer(1, FROZEN_IS);
    (void)frozen_customers_find(frozen, frozen_customers_mark(frozen), id_number(1), clock_ns(), &at);
    assert_true(llabs(at.scheduled_us - clock_wall_us()) < 3600 * INT64_C(1000000));
    await_answer(2, FROZEN_NOT);
    set_status("active", 1, 1);
    await_answer(1, FROZEN_NOT);
}

static void nothing_is_said_once_the_lease_has_run_out(void **state UNUSED)
{
    struct freeze at;
    await_answer(2, FROZEN_NOT);
    uint64_t mark = frozen_customers_mark(frozen);
    /* An instant more than a lease after the last read. */
    int64_t late = clock_ns() + PATIENCE_NS;
    assert_int_equal(frozen_customers_find(frozen, mark, id_number(2), late, &at), FROZEN_UNSURE);
}

static void whoever_looked_while_customers_left_is_not_sure(void **state UNUSED)
{
    struct freeze at;
    int64_t end = clock_ns() + PATIENCE_NS;
    insert_active(10, 10);
    await_answer(10, FROZEN_NOT);
    uint64_t mark = frozen_customers_mark(frozen);
    set_status("deleted", 10, 10);
    while (frozen_customers_mark(frozen) == mark || frozen_customers_mark(frozen) % 2)
        assert_true(clock_ns() < end);
    assert_int_equal(frozen_customers_find(frozen, mark, id_number(10), clock_ns(), &at), FROZEN_UNSURE);
    await_answer(10, FROZEN_NOT); /* with a new mark: its credentials are no longer cached */
}

static void what_leads_to_a_deleted_customer_is_forgotten(void **state UNUSED)
{
    struct digest by = digest_sha256(STR("somebody"));
    struct cached_credential as = {.customer = id_number(11)}, found;
    int64_t end = clock_ns() + PATIENCE_NS;
    insert_active(11, 11);
    await_answer(11, FROZEN_NOT);
    credential_cache_add(credentials, CREDENTIAL_USER, &by, &as, clock_ns(), INT64_MAX);
    assert_true(credential_cache_find(credentials, CREDENTIAL_USER, &by, clock_ns(), &found) != 0);
    set_status("deleted", 11, 11);
    while (credential_cache_find(credentials, CREDENTIAL_USER, &by, clock_ns(), &found))
        assert_true(clock_ns() < end);
}

/* As of this instant an entry has not expired, however long a test takes: if it is not found, it was removed. */
static int64_t cached_ns;

static struct digest cache(enum credential_kind kind, const char *name, struct cached_credential as)
{
    struct digest by = digest_sha256(str_of(name));
    cached_ns = clock_ns();
    credential_cache_add(credentials, kind, &by, &as, cached_ns, INT64_MAX);
    return by;
}

static bool is_cached(enum credential_kind kind, struct digest by)
{
    struct cached_credential found;
    return credential_cache_find(credentials, kind, &by, cached_ns, &found) != 0;
}

static void await_forgotten(enum credential_kind kind, struct digest by)
{
    int64_t end = clock_ns() + PATIENCE_NS;
    while (is_cached(kind, by))
        assert_true(clock_ns() < end);
}

static void whatever_ended_is_forgotten_and_the_rest_stays(void **state UNUSED)
{
    must_run(pg, "INSERT INTO reclaim.access_keys (id, customer_id, key_hash) SELECT " ID("n") ", " ID(
                     "60") ", 'key ' || n FROM generate_series(65, 67) AS n");
    await_answer(60, FROZEN_NOT);
    struct cached_credential of_60 = {.customer = id_number(60), .id = id_number(61), .session = id_number(62)};
    struct cached_credential key = {.customer = id_number(60), .id = id_number(65)};
    struct digest token = cache(CREDENTIAL_TOKEN, "session", of_60), user = cache(CREDENTIAL_USER, "user", of_60);
    struct digest first = cache(CREDENTIAL_KEY, "first", key);
    key.id = id_number(66);
    struct digest second = cache(CREDENTIAL_KEY, "second", key);
    key.id = id_number(67);
    struct digest third = cache(CREDENTIAL_KEY, "third", key);

    must_run(pg, "INSERT INTO reclaim.gate_ended (kind, id) VALUES ('session', " ID("62") ")");
    await_forgotten(CREDENTIAL_TOKEN, token);
    must_run(pg, "DELETE FROM reclaim.access_keys WHERE id = " ID("65"));
    await_forgotten(CREDENTIAL_KEY, first);
    must_run(pg, "UPDATE reclaim.access_keys SET expires_at = now() + interval '1 s' WHERE id = " ID("66"));
    await_forgotten(CREDENTIAL_KEY, second);
    assert_true(is_cached(CREDENTIAL_USER, user) && is_cached(CREDENTIAL_KEY, third));
    must_run(pg, "INSERT INTO reclaim.gate_ended (kind, id) VALUES ('user', " ID("61") ")");
    await_forgotten(CREDENTIAL_USER, user);
    assert_true(is_cached(CREDENTIAL_KEY, third));
    must_run(pg, "TRUNCATE reclaim.access_keys");
    await_forgotten(CREDENTIAL_KEY, third);
}

static void a_customer_whose_row_is_gone_is_forgotten_and_may_come_back_frozen(void **state UNUSED)
{
    insert_active(70, 70);
    set_status("frozen", 70, 70);
    await_answer(70, FROZEN_IS);
    struct digest by = cache(CREDENTIAL_USER, "gone", (struct cached_credential){.customer = id_number(70)});
    must_run(pg, "BEGIN; DELETE FROM reclaim.customer_customers WHERE id = " ID(
                     "70") ";"
                           "INSERT INTO reclaim.gate_ended (kind, id) VALUES ('customer', " ID("70") "); COMMIT");
    await_answer(70, FROZEN_NOT);
    assert_false(is_cached(CREDENTIAL_USER, by));
    must_run(pg,
             "BEGIN; INSERT INTO reclaim.gate_ended (kind, id) VALUES ('customer', " ID(
                 "70") ");"
                       "INSERT INTO reclaim.customer_customers (id, status) VALUES (" ID("70") ", 'frozen'); COMMIT");
    await_answer(70, FROZEN_IS);
    set_status("active", 70, 70);
    await_answer(70, FROZEN_NOT);
}

/* Three rows of each id in one transaction, and more of them than a page holds: the id at a page's end has all of its rows
 * read. Which id that is depends on what else is read with them, so some neighbours are looked at too. */
static void an_id_that_ended_in_three_ways_is_forgotten_in_three_ways(void **state UNUSED)
{
    enum { FIRST = 83325, COUNT = 10 };
    struct digest of_key[COUNT], of_user[COUNT], of_session[COUNT];
    char name[20];
    await_answer(70, FROZEN_NOT);
    for (unsigned i = 0; i < COUNT; i++) {
        struct cached_credential as = {.customer = id_number(60), .id = id_number(FIRST + i)};
        (void)snprintf(name, sizeof name, "%u", i);
        of_key[i] = cache(CREDENTIAL_KEY, name, as);
        of_user[i] = cache(CREDENTIAL_USER, name, as);
        as = (struct cached_credential){.customer = id_number(60), .session = id_number(FIRST + i)};
        of_session[i] = cache(CREDENTIAL_TOKEN, name, as);
    }
    must_run(pg, "INSERT INTO reclaim.gate_ended (kind, id)"
                 " SELECT kind, " ID("n") " FROM generate_series(80000, 95000) AS n,"
                                          " unnest(ARRAY['key', 'session', 'user']) AS kind");
    for (int i = 0; i < COUNT; i++) {
        await_forgotten(CREDENTIAL_KEY, of_key[i]);
        await_forgotten(CREDENTIAL_USER, of_user[i]);
        await_forgotten(CREDENTIAL_TOKEN, of_session[i]);
    }
}

static void the_freeze_is_read_with_its_date_and_who_made_it(void **state UNUSED)
{
    struct freeze found = {.scheduled_us = 0};
    insert_active(75, 77);
    must_run(pg, "UPDATE reclaim.customer_customers SET status = 'frozen', deletion_effective_at = '2031-01-01 00:00Z',"
                 " frozen_by = 'admin', hold_at = now(), hold_reason = 'x' WHERE id = " ID("75"));
    set_status("frozen", 76, 76);
    must_run(pg, "UPDATE reclaim.customer_customers SET status = 'frozen', tm_deletion_scheduled = 'infinity'"
                 " WHERE id = " ID("77"));
    await_answer(75, FROZEN_IS);
    await_answer(76, FROZEN_IS);
    await_answer(77, FROZEN_IS);
    (void)frozen_customers_find(frozen, frozen_customers_mark(frozen), id_number(75), clock_ns(), &found);
    assert_true(found.effective_us == UINT64_C(1924992000000000) && found.by_admin && found.held);
    (void)frozen_customers_find(frozen, frozen_customers_mark(frozen), id_number(76), clock_ns(), &found);
    assert_true((int64_t)found.effective_us - found.scheduled_us ==
                INT64_C(30) * 86400 * 1000000); /* the usual grace */
    assert_false(found.by_admin || found.held);
    set_status("active", 75, 77);
    await_answer(77, FROZEN_NOT);
}

static void the_installations_time_is_followed(void **state UNUSED)
{
    int64_t end = clock_ns() + PATIENCE_NS, day_us = 86400 * INT64_C(1000000);
    must_run(pg, "UPDATE reclaim.installation SET clock_shift = '3 days'");
    while (llabs(frozen_customers_now_us(frozen) - clock_wall_us() - 3 * day_us) > day_us / 24)
        assert_true(clock_ns() < end);
    must_run(pg, "UPDATE reclaim.installation SET clock_shift = '0'");
}

static int64_t tombstones(void)
{
    return number_from(server_url(server), "SELECT count(*) FROM reclaim.gate_ended");
}

static void old_tombstones_are_removed_once_everyone_has_read_them(void **state UNUSED)
{
    struct gate_ended leader = {""};
    struct pg *late = must_connect(server_url(server), PG_PREPARE_OFF);
    must_run(pg, "DELETE FROM reclaim.gate_ended;"
                 "INSERT INTO reclaim.gate_ended (kind, id) VALUES ('key', gen_random_uuid());"
                 "INSERT INTO reclaim.gate_ended (kind, id, created_at) VALUES ('key', gen_random_uuid(), now() - "
                 "interval '2 h')");
    must_run(late, "BEGIN; INSERT INTO reclaim.gate_ended (kind, id, created_at)"
                   " VALUES ('user', gen_random_uuid(), now() - interval '2 h')");
    assert_int_equal(gate_ended_prune(&leader, pg, clock_ns() + PATIENCE_NS), OK);
    assert_int_equal(tombstones(), 2);
    must_run(late, "COMMIT");
    assert_int_equal(gate_ended_prune(&leader, pg, clock_ns() + PATIENCE_NS), OK);
    assert_int_equal(tombstones(), 2); /* the late one may be unread; the old one is gone */
    assert_int_equal(gate_ended_prune(&leader, pg, clock_ns() + PATIENCE_NS), OK);
    assert_int_equal(tombstones(), 1);
    pg_free(late);
}

/* Changes of several pages are read page by page, without a full read. */
static void more_at_once_than_one_page_brings_is_read_all_the_same(void **state UNUSED)
{
    double loads = metric_value("reclaim_frozen_loads_total");
    insert_active(1000, 26000);
    set_status("frozen", 1000, 26000);
    await_answer(26000, FROZEN_IS);
    for (unsigned n = 1000; n <= 26000; n += 500)
        await_answer(n, FROZEN_IS);
    assert_int_equal(frozen_customers_state(frozen).count, 25001);
    set_status("active", 1000, 26000);
    await_answer(26000, FROZEN_NOT);
    assert_int_equal(frozen_customers_state(frozen).count, 0);
    assert_true(metric_value("reclaim_frozen_loads_total") == loads);
}

static void rows_from_another_cluster_count_though_their_transactions_are_still_to_come(void **state UNUSED)
{
    insert_active(20, 21);
    set_status("frozen", 20, 21);
    must_run(pg, "SET session_replication_role = replica;"
                 "UPDATE reclaim.customer_customers SET changed_xid = '1000000000000' WHERE status = 'frozen';"
                 "RESET session_replication_role");
    frozen_customers_stop(frozen);
    start();
    await_answer(20, FROZEN_IS);
    await_answer(21, FROZEN_IS);
    set_status("active", 20, 20);
    await_answer(20, FROZEN_NOT);
    await_answer(21, FROZEN_IS);
    set_status("active", 21, 21);
    await_answer(21, FROZEN_NOT);
}

static void a_database_that_went_away_is_read_anew(void **state UNUSED)
{
    insert_active(30, 31);
    set_status("frozen", 30, 30);
    await_answer(30, FROZEN_IS);
    server_down(server);
    await_answer(30, FROZEN_UNSURE);
    server_up(server);
    pg_free(pg);
    pg = must_connect(server_url(server), PG_PREPARE_OFF);
    set_status("frozen", 31, 31);
    set_status("active", 30, 30);
    await_answer(31, FROZEN_IS);
    await_answer(30, FROZEN_NOT);
    set_status("active", 31, 31);
}

static void a_database_that_hangs_is_not_trusted_for_long(void **state UNUSED)
{
    int64_t backend =
        number_from(server_url(server), "SELECT pid::int8 FROM pg_stat_activity"
                                        " WHERE query LIKE '%AS snapshot, change.what%' AND pid <> pg_backend_pid()"
                                        " LIMIT 1");
    await_answer(31, FROZEN_NOT);
    server_hang(server, (pid_t)backend);
    await_answer(31, FROZEN_UNSURE);
    server_resume(server, (pid_t)backend);
    await_answer(31, FROZEN_NOT);
}

static int64_t unnoted(void)
{
    return number_from(server_url(server), "SELECT count(*) FROM reclaim.customer_customers"
                                           " WHERE status = 'frozen' AND frozen_api_at IS NULL");
}

static void a_row_that_somebody_holds_keeps_the_others_from_being_noted_no_longer_than_itself(void **state UNUSED)
{
    int64_t end = clock_ns() + PATIENCE_NS;
    struct pg *holder = must_connect(server_url(server), PG_PREPARE_OFF);
    insert_active(42000, 42020);
    must_run(holder, "BEGIN");
    set_status("frozen", 42000, 42020);
    must_run(holder, "SELECT FROM reclaim.customer_customers WHERE id = " ID("42007") " FOR UPDATE");
    while (unnoted() > 1)
        assert_true(clock_ns() < end);
    must_run(holder, "COMMIT");
    while (unnoted() > 0)
        assert_true(clock_ns() < end);
    pg_free(holder);
    set_status("active", 42000, 42020);
}

static void every_freeze_is_noted_in_its_row_once_all_must_know(void **state UNUSED)
{
    int64_t end = clock_ns() + PATIENCE_NS;
    insert_active(40000, 41300);
    set_status("frozen", 40000, 41300);
    while (unnoted() > 0)
        assert_true(clock_ns() < end);
    assert_int_equal(number_from(server_url(server),
                                 "SELECT count(*) FROM reclaim.customer_customers WHERE status = 'frozen' AND"
                                 " frozen_api_at < tm_deletion_scheduled + interval '100 ms'"),
                     0);
    assert_int_equal(number_from(server_url(server), "SELECT max(version) FROM reclaim.customer_customers"
                                                     " WHERE status = 'frozen'"),
                     2);
    set_status("active", 40000, 41300);
}

/* --- the lease, with readers on other threads --- */

#define TARGETS 40

struct watch {
    atomic_bool stop;
    _Atomic int64_t answered_ns[TARGETS]; /* when the freeze's reply may be sent; 0: not frozen */
    atomic_bool asked[TARGETS];           /* found in the set after that */
    atomic_int broken;
};

static void *find_until_stopped(void *context)
{
    struct watch *w = context;
    uint64_t dice = 5;
    while (!atomic_load(&w->stop)) {
        unsigned n = (unsigned)number_below(&dice, TARGETS);
        struct freeze at;
        int64_t answered_ns = atomic_load(&w->answered_ns[n]), now = clock_ns();
        uint64_t mark = frozen_customers_mark(frozen);
        enum frozen_answer is = frozen_customers_find(frozen, mark, id_number(5000000 + n), now, &at);
        bool afterwards = answered_ns && now > answered_ns;
        if (afterwards && is == FROZEN_NOT)
            atomic_fetch_add(&w->broken, 1);
        if (afterwards && is != FROZEN_UNSURE)
            atomic_store(&w->asked[n], true);
        nanosleep(&(struct timespec){.tv_nsec = 100 * NS_PER_US}, NULL);
    }
    return NULL;
}

static void from_a_lease_after_its_commit_on_no_freeze_is_denied(void **state UNUSED)
{
    struct watch w = {.broken = 0};
    pthread_t watchers[2];
    insert_active(5000000, 5000000 + TARGETS - 1);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&watchers[i], NULL, find_until_stopped, &w), 0);
    for (unsigned n = 0; n < TARGETS; n++) {
        set_status("frozen", 5000000 + n, 5000000 + n);
        atomic_store(&w.answered_ns[n], clock_ns() + FROZEN_LEASE_NS);
        nanosleep(&(struct timespec){.tv_nsec = (long)(n % 7) * 5 * NS_PER_MS}, NULL);
    }
    int64_t end = clock_ns() + PATIENCE_NS;
    for (unsigned n = 0; n < TARGETS; n++)
        while (!atomic_load(&w.asked[n])) {
            assert_true(clock_ns() < end);
            nanosleep(&(struct timespec){.tv_nsec = 2 * NS_PER_MS}, NULL);
        }
    atomic_store(&w.stop, true);
    for (int i = 0; i < 2; i++)
        pthread_join(watchers[i], NULL);
    assert_int_equal(w.broken, 0);
    set_status("active", 5000000, 5000000 + TARGETS - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(freezes_and_recoveries_are_followed),
        cmocka_unit_test(nothing_is_said_once_the_lease_has_run_out),
        cmocka_unit_test(whoever_looked_while_customers_left_is_not_sure),
        cmocka_unit_test(what_leads_to_a_deleted_customer_is_forgotten),
        cmocka_unit_test(whatever_ended_is_forgotten_and_the_rest_stays),
        cmocka_unit_test(a_customer_whose_row_is_gone_is_forgotten_and_may_come_back_frozen),
        cmocka_unit_test(an_id_that_ended_in_three_ways_is_forgotten_in_three_ways),
        cmocka_unit_test(old_tombstones_are_removed_once_everyone_has_read_them),
        cmocka_unit_test(the_freeze_is_read_with_its_date_and_who_made_it),
        cmocka_unit_test(the_installations_time_is_followed),
        cmocka_unit_test(from_a_lease_after_its_commit_on_no_freeze_is_denied),
        cmocka_unit_test(more_at_once_than_one_page_brings_is_read_all_the_same),
        cmocka_unit_test(rows_from_another_cluster_count_though_their_transactions_are_still_to_come),
        cmocka_unit_test(every_freeze_is_noted_in_its_row_once_all_must_know),
        cmocka_unit_test(a_row_that_somebody_holds_keeps_the_others_from_being_noted_no_longer_than_itself),
        cmocka_unit_test(a_database_that_went_away_is_read_anew),
        cmocka_unit_test(a_database_that_hangs_is_not_trusted_for_long),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
