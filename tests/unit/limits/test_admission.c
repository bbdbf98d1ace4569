/* Admission with a real PostgreSQL whose limits use a clock that the test sets. */
#include "limits/admission.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../base/unit.h"
#include "../pg/server.h"
#include "base/clock.h"
#include "limits/store.h"
#include "pg/migrate.h"

static struct server *server;
static struct pg *pg;
static struct pool *pool;
static struct admission *admission;
static int64_t now_us; /* the time that the database uses */
static uint64_t seed = 88172645463325252u;

static void set_clock(int64_t us)
{
    char sql[128];
    now_us = us;
    snprintf(sql, sizeof sql, "UPDATE public.test_clock SET us = %lld", (long long)us);
    must_run(pg, sql);
}

static int set_up(void **state UNUSED)
{
    const struct schema *schema;
    struct migrate_report report;
    struct why why = {""};
    server = server_start("synchronous_commit=off");
    pg = must_connect(server_url(server), PG_PREPARE_OFF);
    assert_int_equal(migrations_embedded(&schema, &why), OK);
    assert_int_equal(migrate_up(pg, schema, clock_ns() + 60 * NS_PER_S, &report, &why), OK);
    must_run(pg, "CREATE TABLE public.test_clock (us int8); INSERT INTO public.test_clock VALUES (0);"
                 "CREATE OR REPLACE FUNCTION reclaim.limit_clock() RETURNS timestamptz LANGUAGE sql VOLATILE AS"
                 " 'SELECT ''2030-01-01Z''::timestamptz + us * ''1 us''::interval FROM public.test_clock'");
    pool = pool_start(&(struct pool_config){.url = server_url(server), .connections = 4, .queue_capacity = 4096}, &why);
    assert_non_null(pool);
    admission = admission_new();
    assert_non_null(admission);
    assert_int_equal(admission_open(admission, server_url(server), pool, pool, &why), OK);
    while (pool_read_state(pool).connected == 0)
        nanosleep(&(struct timespec){.tv_nsec = 10 * NS_PER_MS}, NULL);
    return 0;
}

static int tear_down(void **state UNUSED)
{
    pool_stop(pool, clock_ns() + 5 * NS_PER_S);
    admission_free(admission);
    pg_free(pg);
    server_free(server);
    return 0;
}

/* A caller that waits for the verdict. */
struct caller {
    struct ticket ticket;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool decided;
};

static void caller_decided(struct ticket *t)
{
    struct caller *c = OWNER_OF(t, struct caller, ticket);
    pthread_mutex_lock(&c->lock);
    c->decided = true;
    pthread_cond_signal(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

static void caller_ask(struct caller *c, const struct counted *charges, size_t count)
{
    *c = (struct caller){.ticket = {.decided = caller_decided}};
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    for (size_t i = 0; i < count; i++)
        ticket_count_in(admission, &c->ticket, charges[i]);
    admission_ask(admission, &c->ticket);
}

static enum admission_verdict caller_wait(struct caller *c)
{
    pthread_mutex_lock(&c->lock);
    while (!c->decided)
        pthread_cond_wait(&c->changed, &c->lock);
    pthread_mutex_unlock(&c->lock);
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->changed);
    return c->ticket.verdict;
}

static enum admission_verdict ask(struct ticket *ret, const struct counted *charges, size_t count)
{
    struct caller c;
    caller_ask(&c, charges, count);
    enum admission_verdict v = caller_wait(&c);
    if (ret)
        *ret = c.ticket;
    return v;
}

static struct counted client(uint64_t number)
{
    static const struct digest key = {{7}};
    return counted_by_email(TIER_IP, &key, (struct str){(const char *)&number, sizeof number});
}

static struct counted address(uint64_t number)
{
    static const struct digest key = {{8}};
    return counted_by_email(TIER_EMAIL, &key, (struct str){(const char *)&number, sizeof number});
}

/* Also clears the cache, so that the database decides. */
static void limits_are(struct limit global, struct limit ip, struct limit email)
{
    struct tier_table tiers = {.of = {[TIER_GLOBAL] = global, [TIER_IP] = ip, [TIER_EMAIL] = email}};
    admission_configure(admission, &tiers);
}

static const struct limit off = {0, 0};

static void a_hundred_at_once_against_five_admit_exactly_five(void **state UNUSED)
{
    for (uint64_t round = 0; round < 20; round++) {
        limits_are(off, (struct limit){5, 60}, off);
        struct counted c = client(1000 + round);
        struct caller *callers = calloc(100, sizeof *callers);
        int admitted = 0;
        for (int i = 0; i < 100; i++)
            caller_ask(&callers[i], &c, 1);
        for (int i = 0; i < 100; i++)
            admitted += caller_wait(&callers[i]) == ADMISSION_GRANTED;
        free(callers);
        assert_int_equal(admitted, 5);
    }
}

static void a_refused_request_charges_no_tier_at_all(void **state UNUSED)
{
    must_run(pg, "TRUNCATE reclaim.rate_limits");
    limits_are((struct limit){1000, 60}, (struct limit){2, 60}, off);
    struct counted charges[] = {counted_globally(), client(1)};
    for (int i = 0; i < 50; i++) {
        limits_are((struct limit){1000, 60}, (struct limit){2, 60}, off);
        assert_int_equal(ask(NULL, charges, 2), i < 2 ? ADMISSION_GRANTED : ADMISSION_REFUSED);
    }
    assert_int_equal(number_from(server_url(server), "SELECT sum(count) FROM reclaim.rate_limits WHERE key = 'global'"),
                     2);
}

static void a_refusal_is_given_from_memory_until_a_reset(void **state UNUSED)
{
    limits_are(off, (struct limit){1, 3600}, off);
    struct counted c = client(2);
    struct ticket t;
    while (!admission_is_listening(admission))
        nanosleep(&(struct timespec){.tv_nsec = 10 * NS_PER_MS}, NULL);
    assert_int_equal(ask(NULL, &c, 1), ADMISSION_GRANTED);
    must_run(pg, "ALTER FUNCTION reclaim.admit_batch RENAME TO admit_away");
    for (int i = 0; i < 100; i++)
        assert_int_equal(ask(&t, &c, 1), ADMISSION_REFUSED); /* from the cache: the database function is missing */
    must_run(pg, "ALTER FUNCTION reclaim.admit_away RENAME TO admit_batch");
    assert_true(t.tiers[0].wait_ns > 3590 * NS_PER_S && t.tiers[0].wait_ns <= 3600 * NS_PER_S);

    assert_int_equal(limits_reset(pg, &c, clock_ns() + 5 * NS_PER_S), OK);
    enum admission_verdict v = ADMISSION_REFUSED;
    for (int64_t end = clock_ns() + 60 * NS_PER_S; v == ADMISSION_REFUSED && clock_ns() < end;) {
        nanosleep(&(struct timespec){.tv_nsec = 10 * NS_PER_MS}, NULL);
        v = ask(NULL, &c, 1);
    }
    assert_int_equal(v, ADMISSION_GRANTED);
}

/* A reference model of the store: an admission counts until it has left the window; with a limit above 100, until the
 * last admission in the same hundredth of the window has left. */
#define BEGINNING_US (INT64_C(1893456000) * 1000000) /* 2030-01-01: the clock's zero */

struct past {
    struct counted counted;
    int64_t at_us;
};

static struct past admitted_before[4096]; /* in order of time */
static size_t admitted_count;

static bool is_same(const struct counted *a, const struct counted *b)
{
    return a->tier == b->tier && digest_eq(&a->subject, &b->subject);
}

static bool share_a_bucket(const struct limit *limit, int64_t a_us, int64_t b_us)
{
    int64_t width_us = limit->requests > 100 ? limit->seconds * 10000 : 1;
    return (BEGINNING_US + a_us - 1) / width_us == (BEGINNING_US + b_us - 1) / width_us;
}

/* When the admission stops counting. */
static int64_t leaves_us(size_t number, const struct limit *limit)
{
    const struct past *p = &admitted_before[number];
    int64_t last_us = p->at_us;
    for (size_t i = number; i < admitted_count; i++)
        if (is_same(&admitted_before[i].counted, &p->counted) &&
            share_a_bucket(limit, admitted_before[i].at_us, p->at_us))
            last_us = admitted_before[i].at_us;
    return last_us + limit->seconds * 1000000;
}

/* Returns how many admissions count now, and the times when they stop counting, earliest first. */
static size_t model_counting(const struct counted *c, const struct limit *limit, int64_t *leaves)
{
    size_t counted = 0;
    for (size_t i = 0; i < admitted_count; i++)
        if (is_same(&admitted_before[i].counted, c) && leaves_us(i, limit) > now_us)
            leaves[counted++] = leaves_us(i, limit);
    return counted;
}

static int64_t model_remaining(const struct counted *c, const struct limit *limit)
{
    int64_t leaves[COUNT_OF(admitted_before)];
    return limit->requests - (int64_t)model_counting(c, limit, leaves);
}

static int64_t model_wait(const struct standing *s)
{
    int64_t leaves[COUNT_OF(admitted_before)];
    size_t counted = model_counting(&s->counted, &s->limit, leaves);
    if ((int64_t)counted < s->limit.requests)
        return 0;
    return (leaves[counted - (size_t)s->limit.requests] - now_us) * NS_PER_US;
}

static void record_admission(const struct counted *charges, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_true(admitted_count < COUNT_OF(admitted_before));
        admitted_before[admitted_count++] = (struct past){charges[i], now_us};
    }
}

/* Independent of how rows are stored: a window that ends now never has more admissions than its limit. */
static void must_be_within_limits(const struct ticket *t)
{
    for (size_t i = 0; i < t->count; i++) {
        const struct standing *s = &t->tiers[i];
        int64_t within = 0;
        for (size_t n = 0; n < admitted_count; n++)
            within += is_same(&admitted_before[n].counted, &s->counted) &&
                      admitted_before[n].at_us > now_us - s->limit.seconds * 1000000;
        assert_true(within <= s->limit.requests);
        assert_true(s->wait_ns <= s->limit.seconds * NS_PER_S);
        assert_true(s->reset_ns > 0 && s->reset_ns <= s->limit.seconds * NS_PER_S);
    }
}

static enum admission_verdict ask_and_compare(struct ticket *t, const struct counted *charges, size_t count)
{
    limits_are(t->tiers[0].limit, t->tiers[1].limit, t->tiers[2].limit);
    struct ticket asked;
    enum admission_verdict v = ask(&asked, charges, count);
    bool room = true;
    for (size_t i = 0; i < asked.count; i++)
        room &= model_wait(&asked.tiers[i]) == 0;
    assert_int_equal(v, room ? ADMISSION_GRANTED : ADMISSION_REFUSED);
    if (v == ADMISSION_GRANTED)
        record_admission(charges, count);
    for (size_t i = 0; i < asked.count; i++)
        assert_int_equal(asked.tiers[i].wait_ns, model_wait(&asked.tiers[i]));
    must_be_within_limits(&asked);
    *t = asked;
    return v;
}

static void wait_until_reset(const struct ticket *t)
{
    int64_t longest = 0;
    for (size_t i = 0; i < t->count; i++)
        longest = t->tiers[i].wait_ns > longest ? t->tiers[i].wait_ns : longest;
    set_clock(now_us + (longest + NS_PER_S - 1) / NS_PER_S * 1000000);
}

static void begin_history(void)
{
    must_run(pg, "TRUNCATE reclaim.rate_limits");
    admitted_count = 0;
    set_clock((int64_t)number_below(&seed, 100000000));
}

static struct limit random_limit(void)
{
    return (struct limit){(int64_t)number_below(&seed, 4) + 1, (int64_t)number_below(&seed, 12) + 1};
}

/* The arithmetic is SQL's: the thread sanitizer, which makes each history five times as long, needs a few of them only. */
#ifdef __SANITIZE_THREAD__
#define HISTORIES 50
#else
#define HISTORIES 500
#endif

static void no_window_has_more_than_its_limit_and_waiting_as_told_always_admits(void **state UNUSED)
{
    int histories = HISTORIES, refusals = 0;
    for (int history = 0; history < histories; history++) {
        begin_history();
        struct limit tiers[3] = {random_limit(), random_limit(), random_limit()};
        tiers[0].requests += 4;
        for (int step = 0; step < 12; step++) {
            struct counted charges[] = {counted_globally(), client(number_below(&seed, 2)),
                                        address(number_below(&seed, 2))};
            struct ticket t = {.tiers = {{.limit = tiers[0]}, {.limit = tiers[1]}, {.limit = tiers[2]}}};
            if (ask_and_compare(&t, charges, 3) == ADMISSION_REFUSED) {
                refusals++;
                wait_until_reset(&t);
                assert_int_equal(ask_and_compare(&t, charges, 3), ADMISSION_GRANTED);
            }
            set_clock(now_us + (int64_t)number_below(&seed, 1500000));
        }
    }
    assert_true(refusals > histories / 2);
}

/* Sends `count` requests at the same time, counted globally. Returns how many were admitted. */
static int64_t ask_concurrently(const struct limit *limit, size_t count)
{
    struct caller *callers = calloc(count, sizeof *callers);
    struct counted global = counted_globally();
    int64_t admitted = 0;
    limits_are(*limit, off, off);
    for (size_t i = 0; i < count; i++)
        caller_ask(&callers[i], &global, 1);
    for (size_t i = 0; i < count; i++)
        admitted += caller_wait(&callers[i]) == ADMISSION_GRANTED;
    for (int64_t i = 0; i < admitted; i++)
        record_admission(&global, 1);
    free(callers);
    return admitted;
}

static void a_limit_in_the_hundreds_is_kept_as_exactly_in_buckets(void **state UNUSED)
{
    int refusals = 0;
    struct counted global = counted_globally();
    for (int history = 0; history < HISTORIES / 8; history++) {
        begin_history();
        struct limit limit = {101 + (int64_t)number_below(&seed, 60), (int64_t)number_below(&seed, 4) + 1};
        for (int step = 0; step < 12; step++) {
            int64_t count = (int64_t)number_below(&seed, 70) + 1, room = model_remaining(&global, &limit);
            assert_int_equal(ask_concurrently(&limit, (size_t)count), count < room ? count : room);
            struct ticket t = {.tiers = {{.limit = limit}}};
            if (ask_and_compare(&t, &global, 1) == ADMISSION_REFUSED) {
                refusals++;
                wait_until_reset(&t);
                assert_int_equal(ask_and_compare(&t, &global, 1), ADMISSION_GRANTED);
            }
            set_clock(now_us + (int64_t)number_below(&seed, 60) * (int64_t)number_below(&seed, 20000));
        }
    }
    assert_true(refusals > HISTORIES / 8);
}

static void a_clock_that_is_set_back_makes_nobody_wait_longer_than_the_window(void **state UNUSED)
{
    for (int history = 0; history < HISTORIES / 10; history++) {
        begin_history();
        struct limit limit = {(int64_t)number_below(&seed, 3) + 1, (int64_t)number_below(&seed, 60) + 1};
        struct counted c = client(4);
        struct ticket t;
        for (int step = 0; step < 10; step++) {
            limits_are(off, limit, off);
            (void)ask(&t, &c, 1);
            assert_true(t.tiers[0].wait_ns <= limit.seconds * NS_PER_S);
            assert_true(t.tiers[0].reset_ns > 0 && t.tiers[0].reset_ns <= limit.seconds * NS_PER_S);
            set_clock(now_us - (int64_t)number_below(&seed, 100000000) + (int64_t)number_below(&seed, 50000000));
        }
        limits_are(off, limit, off);
        while (ask(&t, &c, 1) == ADMISSION_GRANTED)
            limits_are(off, limit, off);
        wait_until_reset(&t);
        limits_are(off, limit, off);
        assert_int_equal(ask(&t, &c, 1), ADMISSION_GRANTED);
    }
}

static void the_function_for_others_counts_the_same(void **state UNUSED)
{
    must_run(pg, "TRUNCATE reclaim.rate_limits");
    limits_are((struct limit){3, 60}, off, off);
    struct counted global = counted_globally();
    assert_int_equal(ask(NULL, &global, 1), ADMISSION_GRANTED);
    assert_int_equal(
        number_from(server_url(server), "SELECT current_count FROM reclaim.check_rate_limit('global', 3, 60)"), 2);
    assert_int_equal(ask(NULL, &global, 1), ADMISSION_GRANTED);
    assert_int_equal(
        number_from(server_url(server), "SELECT allowed::int FROM reclaim.check_rate_limit('global', 3, 60)"), 0);
    limits_are((struct limit){3, 60}, off, off);
    assert_int_equal(ask(NULL, &global, 1), ADMISSION_REFUSED);
}

static void a_limit_that_is_lowered_or_off_takes_effect_at_once(void **state UNUSED)
{
    must_run(pg, "TRUNCATE reclaim.rate_limits");
    struct counted c = client(3);
    limits_are(off, (struct limit){5, 60}, off);
    for (int i = 0; i < 4; i++)
        assert_int_equal(ask(NULL, &c, 1), ADMISSION_GRANTED);
    limits_are(off, (struct limit){2, 7200}, off);
    struct ticket t;
    assert_int_equal(ask(&t, &c, 1), ADMISSION_REFUSED);
    assert_true(t.tiers[0].wait_ns > 7199 * NS_PER_S);
    limits_are(off, off, off);
    assert_int_equal(ask(&t, &c, 1), ADMISSION_GRANTED);
    assert_int_equal(t.count, 0);
    limits_are(off, (struct limit){5, 60}, off);
    assert_int_equal(ask(NULL, &c, 1), ADMISSION_GRANTED);
    assert_int_equal(ask(NULL, &c, 1), ADMISSION_REFUSED);
}

static void a_soft_tier_refuses_nothing_and_is_not_kept_in_memory(void **state UNUSED)
{
    must_run(pg, "TRUNCATE reclaim.rate_limits");
    limits_are(off, (struct limit){100, 60}, (struct limit){2, 60});
    for (int i = 0; i < 5; i++) {
        struct caller c = {.ticket = {.decided = caller_decided}};
        pthread_mutex_init(&c.lock, NULL);
        pthread_cond_init(&c.changed, NULL);
        ticket_count_in(admission, &c.ticket, client(6));
        ticket_count_softly(admission, &c.ticket, address(6));
        admission_ask(admission, &c.ticket);
        assert_int_equal(caller_wait(&c), ADMISSION_GRANTED);
        assert_int_equal(ticket_soft_is_full(&c.ticket), i >= 2);
        assert_int_equal(c.ticket.tiers[0].remaining, 99 - i);
    }
    assert_int_equal(
        number_from(server_url(server), "SELECT sum(count) FROM reclaim.rate_limits WHERE key ~ '^email:'"), 2);
}

static void the_database_knows_every_tier_as_reclaims_own(void **state UNUSED)
{
    for (int tier = 0; tier < TIER_COUNT; tier++) {
        char sql[128];
        snprintf(sql, sizeof sql, "SELECT reclaim.limit_tier_is_own('%s')::int", tier_name((enum tier)tier));
        assert_int_equal(number_from(server_url(server), sql), 1);
    }
    assert_int_equal(number_from(server_url(server), "SELECT reclaim.limit_tier_is_own('product')::int"), 0);
}

/* Another program is in a transaction in which it called check_rate_limit() with the client's key. */
static void a_key_that_is_locked_elsewhere_fails_its_requests_and_no_others(void **state UNUSED)
{
    enum { CALLERS = 60 };
    must_run(pg, "TRUNCATE reclaim.rate_limits");
    limits_are((struct limit){1000, 60}, (struct limit){5, 60}, off);
    struct pg *other = must_connect(server_url(server), PG_PREPARE_OFF);
    struct counted locked[] = {counted_globally(), client(7)};
    char key[COUNTED_KEY_MAX], sql[256];
    counted_key(&locked[1], key);
    snprintf(sql, sizeof sql, "BEGIN; SELECT reclaim.check_rate_limit('%s', 5, 60)", key);
    must_run(other, sql);
    for (int round = 0; round < 3; round++) {
        struct caller *callers = calloc(CALLERS, sizeof *callers);
        for (uint64_t i = 0; i < CALLERS; i++) {
            struct counted others[] = {counted_globally(), client(100 + i)};
            caller_ask(&callers[i], i % 2 ? others : locked, 2);
        }
        for (int i = 0; i < CALLERS; i++)
            assert_int_equal(caller_wait(&callers[i]), i % 2 ? ADMISSION_GRANTED : ADMISSION_FAILED);
        free(callers);
    }
    must_run(other, "ROLLBACK");
    pg_free(other);
    assert_int_equal(ask(NULL, locked, 2), ADMISSION_GRANTED);
}

static void pruning_goes_by_each_tiers_window(void **state UNUSED)
{
    must_run(pg, "TRUNCATE reclaim.rate_limits; TRUNCATE reclaim.rate_limit_tiers");
    set_clock(INT64_C(100000) * 1000000);
    must_run(
        pg, "INSERT INTO reclaim.rate_limits SELECT k, reclaim.limit_clock() - a * '1 s'::interval, 1"
            " FROM unnest(ARRAY['global', 'ip:a', 'email:b', 'other:c']) k, unnest(ARRAY[10, 119, 200, 7000, 7300]) a");
    struct tier_table tiers = {.of = {[TIER_GLOBAL] = {1000, 60}, [TIER_IP] = {5, 60}, [TIER_EMAIL] = {3, 3600}}};
    assert_int_equal(limits_prune(pg, &tiers, clock_ns() + 5 * NS_PER_S), OK);
    static const struct {
        const char *tier;
        int64_t kept;
    } expected[] = {{"global", 2}, {"ip", 2}, {"email", 4}, {"other", 4}};
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        char sql[128];
        snprintf(sql, sizeof sql, "SELECT count(*) FROM reclaim.rate_limits WHERE key LIKE '%s%%'", expected[i].tier);
        assert_int_equal(number_from(server_url(server), sql), expected[i].kept);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hundred_at_once_against_five_admit_exactly_five),
        cmocka_unit_test(a_refused_request_charges_no_tier_at_all),
        cmocka_unit_test(a_refusal_is_given_from_memory_until_a_reset),
        cmocka_unit_test(no_window_has_more_than_its_limit_and_waiting_as_told_always_admits),
        cmocka_unit_test(a_limit_in_the_hundreds_is_kept_as_exactly_in_buckets),
        cmocka_unit_test(a_clock_that_is_set_back_makes_nobody_wait_longer_than_the_window),
        cmocka_unit_test(the_function_for_others_counts_the_same),
        cmocka_unit_test(a_limit_that_is_lowered_or_off_takes_effect_at_once),
        cmocka_unit_test(a_soft_tier_refuses_nothing_and_is_not_kept_in_memory),
        cmocka_unit_test(the_database_knows_every_tier_as_reclaims_own),
        cmocka_unit_test(a_key_that_is_locked_elsewhere_fails_its_requests_and_no_others),
        cmocka_unit_test(pruning_goes_by_each_tiers_window),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
