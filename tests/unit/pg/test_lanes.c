/* Lanes: no kind of request uses up the connections of another, and a database that is silent keeps nobody waiting. */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "pg/lanes.h"
#include "server.h"

#define PATIENCE_NS (60 * NS_PER_S)

static struct server *server;

static const struct statement who = {"who", "SELECT pg_backend_pid() AS pid", 0, "pid:int4"};
static const struct statement nap = {"nap", "SELECT pg_sleep(1.5)::text AS slept", 0, "slept:text"};

struct task {
    struct job job;
    pthread_barrier_t *meet; /* met when it runs, and before it goes on */
    pid_t backend;
    atomic_int done;
    enum err e;
};

static enum err look(struct job *job, struct pg *pg)
{
    struct task *t = OWNER_OF(job, struct task, job);
    struct pg_call call = {.ask = &who};
    enum err e = pg_ask(pg, &call, job->deadline_ns);
    t->backend = (pid_t)pg_get_i64(&call, 0, 0);
    if (!e && t->meet) {
        (void)pthread_barrier_wait(t->meet);
        (void)pthread_barrier_wait(t->meet);
        e = pg_ask(pg, &call, job->deadline_ns);
    }
    return e;
}

static void ended(struct job *job, enum err e)
{
    struct task *t = OWNER_OF(job, struct task, job);
    t->e = e;
    atomic_store(&t->done, 1);
}

static struct task task(pthread_barrier_t *meet)
{
    return (struct task){.job = {look, ended, clock_ns() + PATIENCE_NS, NULL}, .meet = meet};
}

static void await(struct task *t)
{
    for (int64_t end = clock_ns() + PATIENCE_NS; !atomic_load(&t->done);) {
        assert_true(clock_ns() < end);
        (void)poll(NULL, 0, 1);
    }
}

static struct lanes *must_start(const char *url, const struct pg_pulse *pulse)
{
    struct why why = {""};
    struct lanes *lanes = lanes_start(
        &(struct lanes_config){.url = url, .connections = LANE_COUNT, .queue_capacity = 10, .pulse = pulse}, &why);
    if (!lanes)
        fail_msg("%s", why.text);
    for (int64_t end = clock_ns() + PATIENCE_NS; lanes_read_state(lanes).connected != LANE_COUNT;) {
        assert_true(clock_ns() < end);
        (void)poll(NULL, 0, 5);
    }
    return lanes;
}

static void the_shares_add_up_and_no_lane_is_left_out(void **state)
{
    (void)state;
    for (int all = 1; all <= 200; all++) {
        int sum = 0;
        for (int lane = 0; lane < LANE_COUNT; lane++) {
            assert_true(lanes_share(all, (enum lane)lane) >= 1);
            sum += lanes_share(all, (enum lane)lane);
        }
        assert_int_equal(sum, all < LANE_COUNT ? LANE_COUNT : all);
    }
}

static void a_lane_in_use_leaves_the_others_served(void **state)
{
    (void)state;
    struct lanes *lanes = must_start(server_url(server), NULL);
    pthread_barrier_t meet;
    (void)pthread_barrier_init(&meet, NULL, 2);
    struct task stuck = task(&meet), waiting = task(NULL);
    assert_int_equal(pool_submit(lanes_pool(lanes, LANE_ANONYMOUS), &stuck.job), OK);
    (void)pthread_barrier_wait(&meet);
    assert_int_equal(pool_submit(lanes_pool(lanes, LANE_ANONYMOUS), &waiting.job), OK);
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        struct task other = task(NULL);
        if (lane == LANE_ANONYMOUS)
            continue;
        assert_int_equal(pool_submit(lanes_pool(lanes, (enum lane)lane), &other.job), OK);
        await(&other);
        assert_int_equal(other.e, OK);
    }
    for (int64_t end = clock_ns() + PATIENCE_NS; !lanes_is_stalled(lanes, LANE_ANONYMOUS);) {
        assert_true(clock_ns() < end);
        (void)poll(NULL, 0, 5);
    }
    assert_false(lanes_is_stalled(lanes, LANE_GATE));
    assert_int_equal(atomic_load(&waiting.done), 0);
    (void)pthread_barrier_wait(&meet);
    await(&waiting);
    assert_false(lanes_is_stalled(lanes, LANE_ANONYMOUS));
    lanes_stop(lanes, clock_ns() + PATIENCE_NS);
    (void)pthread_barrier_destroy(&meet);
}

/* Asks as the reader of customer changes does, until it is told to stop. */
struct reporter {
    struct pg *pg;
    struct pg_pulse pulse;
    pid_t backend;
    atomic_bool stop;
    pthread_t thread;
};

static void *report(void *context)
{
    struct reporter *r = context;
    while (!atomic_load(&r->stop)) {
        struct why why;
        struct pg_call call = {.ask = &who};
        if (pg_is_up(r->pg) || pg_connect(r->pg, clock_ns() + 5 * NS_PER_S, &why) == OK)
            (void)!pg_ask(r->pg, &call, clock_ns() + 5 * NS_PER_S);
        (void)poll(NULL, 0, 20);
    }
    return NULL;
}

static void reporter_start(struct reporter *r)
{
    struct pg_call call = {.ask = &who};
    *r = (struct reporter){.pg = must_connect(server_url(server), PG_PREPARE_AUTO)};
    pg_report_pulse(r->pg, &r->pulse);
    assert_int_equal(pg_ask(r->pg, &call, clock_ns() + PATIENCE_NS), OK);
    r->backend = (pid_t)pg_get_i64(&call, 0, 0);
    assert_int_equal(pthread_create(&r->thread, NULL, report, r), 0);
}

static void reporter_stop(struct reporter *r)
{
    atomic_store(&r->stop, true);
    (void)pthread_join(r->thread, NULL);
    pg_free(r->pg);
}

static void await_pulse(struct reporter *r, bool silent)
{
    for (int64_t end = clock_ns() + PATIENCE_NS; atomic_load(&r->pulse.silent) != silent;) {
        assert_true(clock_ns() < end);
        (void)poll(NULL, 0, 5);
    }
}

/* The jobs have a minute; without the pulse they would use it. */
static void a_silent_database_keeps_no_job_waiting(void **state)
{
    (void)state;
    struct reporter reporter;
    reporter_start(&reporter);
    struct lanes *lanes = must_start(server_url(server), &reporter.pulse);
    struct pool *pool = lanes_pool(lanes, LANE_ACCOUNT);
    pthread_barrier_t meet;
    (void)pthread_barrier_init(&meet, NULL, 2);
    struct task running = task(&meet), waiting = task(NULL), refused = task(NULL), after = task(NULL);
    assert_int_equal(pool_submit(pool, &running.job), OK);
    (void)pthread_barrier_wait(&meet);
    assert_int_equal(pool_submit(pool, &waiting.job), OK);
    server_hang(server, reporter.backend);
    server_hang(server, running.backend);
    int64_t began_ns = clock_ns();
    (void)pthread_barrier_wait(&meet);
    await(&running);
    await(&waiting);
    assert_true(clock_ns() - began_ns < PATIENCE_NS / 6);
    assert_int_equal(running.e, ERR_TIMEOUT);
    assert_int_equal(waiting.e, ERR_CLOSED);
    assert_int_equal(pool_submit(pool, &refused.job), ERR_CLOSED);

    server_resume(server, running.backend);
    server_resume(server, reporter.backend);
    await_pulse(&reporter, false);
    while (pool_read_state(pool).connected == 0)
        (void)poll(NULL, 0, 5);
    assert_int_equal(pool_submit(pool, &after.job), OK);
    await(&after);
    assert_int_equal(after.e, OK);
    lanes_stop(lanes, clock_ns() + PATIENCE_NS);
    reporter_stop(&reporter);
    (void)pthread_barrier_destroy(&meet);
}

static void a_connect_that_gets_no_answer_is_silence_too(void **state)
{
    (void)state;
    struct reporter reporter;
    reporter_start(&reporter);
    (void)number_from(server_url(server), "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                                          " WHERE application_name = 'reclaim' AND pid <> pg_backend_pid()");
    server_hang(server, 0);
    await_pulse(&reporter, true);
    server_resume(server, 0);
    await_pulse(&reporter, false);
    reporter_stop(&reporter);
}

static void a_slow_statement_is_no_silence(void **state)
{
    (void)state;
    struct pg_pulse pulse = {false};
    struct pg *pg = must_connect(server_url(server), PG_PREPARE_AUTO);
    pg_report_pulse(pg, &pulse);
    pg_heed_pulse(pg, &pulse);
    struct pg_call call = {.ask = &nap};
    assert_int_equal(pg_ask(pg, &call, clock_ns() + PATIENCE_NS), OK);
    assert_false(atomic_load(&pulse.silent));
    pg_free(pg);
}

static int start_server(void **state)
{
    (void)state;
    server = server_start("fsync=off");
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    server_free(server);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_shares_add_up_and_no_lane_is_left_out),
        cmocka_unit_test(a_lane_in_use_leaves_the_others_served),
        cmocka_unit_test(a_silent_database_keeps_no_job_waiting),
        cmocka_unit_test(a_connect_that_gets_no_answer_is_silence_too),
        cmocka_unit_test(a_slow_statement_is_no_silence),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
