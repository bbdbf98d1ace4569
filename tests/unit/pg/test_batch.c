/* Batches: every item added is completed exactly once, in order, also when the database fails. */
#include "pg/batch.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "../base/unit.h"
#include "base/clock.h"
#include "base/log.h"
#include "server.h"

#define SOON (clock_ns() + 60 * NS_PER_S)
#define LONG_NS (60 * NS_PER_S)
#define RUNS_MAX 1024

struct thing {
    struct batch_item item;
    int number;
    atomic_int done, asked;
    enum err e;
    int again; /* how often to add it again when it is done */
};

/* Controls the runs of a batch and records them. */
struct scene {
    struct batch *batch;
    struct pool *pool;
    pthread_mutex_t lock; /* guards the members below */
    pthread_cond_t changed;
    int gate; /* runs that may continue; INT32_MAX: all */
    int running, most_running;
    int conflicts, broken; /* how many more runs shall end with this error */
    int runs;
    struct {
        int first, count;
    } run[RUNS_MAX];
    int done_count, done_order[65536];
};

static struct scene *scene_new(void)
{
    struct scene *s = calloc(1, sizeof *s);
    assert_non_null(s);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    s->gate = INT32_MAX;
    return s;
}

static struct thing *thing_of(struct batch_item *item)
{
    return OWNER_OF(item, struct thing, item);
}

static enum err ask(void *context, struct pg *pg, struct batch_item **items, size_t count)
{
    static const struct statement nothing = {"nothing", "SELECT 1 AS one", 0, "one:int4"};
    struct scene *s = context;
    pthread_mutex_lock(&s->lock);
    int first = thing_of(items[0])->number;
    if (s->runs < RUNS_MAX) {
        s->run[s->runs].first = first;
        s->run[s->runs].count = (int)count;
    }
    s->runs++;
    s->running++;
    s->most_running = s->running > s->most_running ? s->running : s->most_running;
    pthread_cond_broadcast(&s->changed);
    while (s->gate == 0)
        pthread_cond_wait(&s->changed, &s->lock);
    s->gate -= s->gate != INT32_MAX;
    s->running--;
    enum err e = s->conflicts > 0 ? ERR_CONFLICT : s->broken > 0 ? ERR_DATABASE : OK;
    s->conflicts -= e == ERR_CONFLICT;
    s->broken -= e == ERR_DATABASE;
    pthread_mutex_unlock(&s->lock);
    for (size_t i = 0; i < count; i++)
        atomic_fetch_add(&thing_of(items[i])->asked, 1);
    struct pg_call call = {.ask = &nothing};
    return e ? e : pg_ask(pg, &call, SOON);
}

static void done(void *context, struct batch_item *item, enum err e)
{
    struct scene *s = context;
    struct thing *t = thing_of(item);
    t->e = e;
    if (t->again-- > 0) {
        assert_int_equal(batch_add(s->batch, item), OK);
        return;
    }
    pthread_mutex_lock(&s->lock);
    s->done_order[s->done_count++ % (int)COUNT_OF(s->done_order)] = t->number;
    atomic_fetch_add(&t->done, 1);
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

struct size {
    int connections, in_flight;
    size_t queue_capacity, most, capacity;
};

static struct scene *open_at(const char *url, struct size size, int64_t limit_ns)
{
    struct scene *s = scene_new();
    struct why why = {""};
    struct pool_config pool = {.url = url, .connections = size.connections, .queue_capacity = size.queue_capacity};
    s->pool = pool_start(&pool, &why);
    if (!s->pool)
        fail_msg("%s", why.text);
    s->batch = batch_new(&(struct batch_config){.pool = s->pool,
                                                .most = size.most,
                                                .capacity = size.capacity,
                                                .in_flight = size.in_flight,
                                                .limit_ns = limit_ns,
                                                .context = s,
                                                .run = ask,
                                                .done = done});
    assert_non_null(s->batch);
    return s;
}

static void await_connected(struct scene *s, int count)
{
    for (int64_t end = clock_ns() + LONG_NS; pool_read_state(s->pool).connected != count;) {
        assert_true(clock_ns() < end);
        (void)poll(NULL, 0, 5);
    }
}

static struct scene *open_scene(struct size size)
{
    struct scene *s = open_at(shared_url(), size, LONG_NS);
    await_connected(s, size.connections);
    return s;
}

static void close_scene(struct scene *s)
{
    pool_stop(s->pool, SOON);
    batch_free(s->batch);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static void gate(struct scene *s, int runs)
{
    pthread_mutex_lock(&s->lock);
    s->gate = runs;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void await(struct scene *s, const int *what, int least)
{
    pthread_mutex_lock(&s->lock);
    while (*what < least)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

/* An array of numbered things. */
static struct thing *things(int count)
{
    struct thing *all = calloc((size_t)count, sizeof *all);
    assert_non_null(all);
    for (int i = 0; i < count; i++)
        all[i].number = i;
    return all;
}

static void add(struct scene *s, struct thing *all, int from, int to)
{
    for (int i = from; i < to; i++)
        assert_int_equal(batch_add(s->batch, &all[i].item), OK);
}

static void assert_done(const struct thing *all, int from, int to, enum err e)
{
    for (int i = from; i < to; i++) {
        assert_int_equal(all[i].done, 1);
        assert_int_equal(all[i].e, e);
    }
}

static void all_are_done_once_in_the_order_they_came(void **state UNUSED)
{
    struct scene *s =
        open_scene((struct size){.connections = 2, .in_flight = 1, .queue_capacity = 8, .most = 10, .capacity = 1000});
    struct thing *all = things(200);
    gate(s, 0);
    add(s, all, 0, 200);
    gate(s, INT32_MAX);
    await(s, &s->done_count, 200);
    assert_done(all, 0, 200, OK);
    int next = 0;
    for (int i = 0; i < s->runs; i++) {
        assert_int_equal(s->run[i].first, next);
        assert_in_range(s->run[i].count, 1, 10);
        next += s->run[i].count;
    }
    assert_int_equal(next, 200);
    for (int i = 0; i < 200; i++) {
        assert_int_equal(s->done_order[i], i);
        assert_int_equal(all[i].asked, 1);
    }
    close_scene(s);
    free(all);
}

static void what_arrives_meanwhile_makes_up_the_next_batch(void **state UNUSED)
{
    struct scene *s =
        open_scene((struct size){.connections = 2, .in_flight = 1, .queue_capacity = 8, .most = 100, .capacity = 1000});
    struct thing *all = things(8);
    gate(s, 0);
    add(s, all, 0, 1);
    await(s, &s->running, 1); /* a batch does not wait to be filled */
    add(s, all, 1, 8);
    gate(s, INT32_MAX);
    await(s, &s->done_count, 8);
    assert_int_equal(s->runs, 2);
    assert_int_equal(s->run[0].count, 1);
    assert_int_equal(s->run[1].count, 7);
    close_scene(s);
    free(all);
}

static void too_many_waiting_are_refused_at_once(void **state UNUSED)
{
    struct scene *s =
        open_scene((struct size){.connections = 1, .in_flight = 1, .queue_capacity = 8, .most = 3, .capacity = 5});
    struct thing *all = things(7);
    gate(s, 0);
    add(s, all, 0, 1);
    await(s, &s->running, 1);
    add(s, all, 1, 6);
    assert_int_equal(batch_add(s->batch, &all[6].item), ERR_FULL);
    gate(s, INT32_MAX);
    await(s, &s->done_count, 6);
    assert_done(all, 0, 6, OK);
    add(s, all, 6, 7); /* no longer full */
    await(s, &s->done_count, 7);
    assert_done(all, 6, 7, OK);
    close_scene(s);
    free(all);
}

static void after_a_conflict_the_same_ones_are_asked_for_again(void **state UNUSED)
{
    struct scene *s =
        open_scene((struct size){.connections = 1, .in_flight = 1, .queue_capacity = 8, .most = 100, .capacity = 1000});
    struct thing *all = things(10);
    gate(s, 0);
    s->conflicts = 3;
    add(s, all, 0, 1);
    await(s, &s->running, 1);
    add(s, all, 1, 10); /* not part of the retry */
    gate(s, INT32_MAX);
    await(s, &s->done_count, 10);
    assert_done(all, 0, 10, OK);
    assert_int_equal(s->runs, 5);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(s->run[i].first, 0);
        assert_int_equal(s->run[i].count, 1);
    }
    assert_int_equal(s->run[4].first, 1);
    assert_int_equal(s->run[4].count, 9);
    close_scene(s);
    free(all);
}

static void a_conflict_that_lasts_or_a_failure_is_told_to_that_batch_alone(void **state UNUSED)
{
    struct scene *s =
        open_scene((struct size){.connections = 1, .in_flight = 1, .queue_capacity = 8, .most = 4, .capacity = 1000});
    struct thing *all = things(13);
    gate(s, 0);
    s->conflicts = 6;
    s->broken = 1;
    add(s, all, 0, 1);
    await(s, &s->running, 1);
    add(s, all, 1, 13);
    gate(s, INT32_MAX);
    await(s, &s->done_count, 13);
    assert_done(all, 0, 1, ERR_CONFLICT);
    assert_int_equal(all[0].asked, 6);
    assert_done(all, 1, 5, ERR_DATABASE);
    assert_int_equal(all[1].asked, 1);
    assert_done(all, 5, 13, OK);
    close_scene(s);
    free(all);
}

static void as_many_are_under_way_as_may_be_and_no_more(void **state UNUSED)
{
    for (int in_flight = 1; in_flight <= 4; in_flight++) {
        struct scene *s = open_scene(
            (struct size){.connections = 6, .in_flight = in_flight, .queue_capacity = 8, .most = 2, .capacity = 1000});
        struct thing *all = things(100);
        gate(s, 0);
        for (int i = 0; i < in_flight; i++) {
            add(s, all, i, i + 1);
            await(s, &s->running, i + 1); /* all of them run at the same time */
        }
        add(s, all, in_flight, 100);
        gate(s, INT32_MAX);
        await(s, &s->done_count, 100);
        assert_done(all, 0, 100, OK);
        assert_int_equal(s->most_running, in_flight);
        close_scene(s);
        free(all);
    }
}

static void without_a_database_everyone_is_told_before_the_call_returns(void **state UNUSED)
{
    struct server *server = server_start(NULL);
    struct size size = {.connections = 1, .in_flight = 2, .queue_capacity = 8, .most = 4, .capacity = 1000};
    struct scene *s = open_at(server_url(server), size, LONG_NS);
    await_connected(s, 1);
    struct thing *all = things(40);
    server_shut(server);
    await_connected(s, 0);
    for (int i = 0; i < 20; i++) {
        add(s, all, i, i + 1);
        assert_done(all, i, i + 1, ERR_CLOSED);
    }
    assert_int_equal(s->runs, 0);
    server_up(server);
    await_connected(s, 1);
    add(s, all, 20, 40);
    await(s, &s->done_count, 40);
    assert_done(all, 20, 40, OK);
    close_scene(s);
    free(all);
    server_free(server);
}

static void when_the_database_goes_all_who_wait_are_told(void **state UNUSED)
{
    struct server *server = server_start(NULL);
    struct size size = {.connections = 2, .in_flight = 2, .queue_capacity = 8, .most = 5, .capacity = 1000};
    struct scene *s = open_at(server_url(server), size, LONG_NS);
    await_connected(s, 2);
    struct thing *all = things(100);
    gate(s, 0);
    for (int i = 0; i < 2; i++) {
        add(s, all, i, i + 1);
        await(s, &s->running, i + 1);
    }
    add(s, all, 2, 100);
    server_down(server);
    gate(s, INT32_MAX);
    await(s, &s->done_count, 100);
    assert_done(all, 0, 100, ERR_CLOSED);
    close_scene(s);
    free(all);
    server_free(server);
}

/* Occupies a worker or a place in the pool's queue until the gate of its scene opens. */
struct plug {
    struct job job;
    struct scene *scene;
};

static enum err keep_busy(struct job *job, struct pg *pg UNUSED)
{
    struct scene *s = OWNER_OF(job, struct plug, job)->scene;
    pthread_mutex_lock(&s->lock);
    s->running++;
    pthread_cond_broadcast(&s->changed);
    while (s->gate == 0)
        pthread_cond_wait(&s->changed, &s->lock);
    s->running--;
    pthread_mutex_unlock(&s->lock);
    return OK;
}

static void plug_done(struct job *job UNUSED, enum err e UNUSED)
{
}

static struct plug plug_in(struct scene *s)
{
    return (struct plug){.job = {.run = keep_busy, .done = plug_done, .deadline_ns = SOON}, .scene = s};
}

static void await_idle(struct scene *s)
{
    for (int64_t end = clock_ns() + LONG_NS; pool_read_state(s->pool).queued || pool_read_state(s->pool).busy;) {
        assert_true(clock_ns() < end);
        (void)poll(NULL, 0, 5);
    }
}

static void a_full_pool_refuses_unless_a_batch_under_way_can_take_them_along(void **state UNUSED)
{
    struct size size = {.connections = 2, .in_flight = 2, .queue_capacity = 1, .most = 5, .capacity = 1000};
    struct scene *s = open_scene(size), *others = scene_new();
    struct thing *all = things(12);
    struct plug *plugs = calloc(5, sizeof *plugs);
    assert_non_null(plugs);
    gate(others, 0);
    for (int i = 0; i < 3; i++) {
        plugs[i] = plug_in(others);
        assert_int_equal(pool_submit(s->pool, &plugs[i].job), OK);
        await(others, &others->running, i < 2 ? i + 1 : 2); /* two on the workers, the third in the queue */
    }
    add(s, all, 0, 1); /* no worker or running batch would take it */
    assert_done(all, 0, 1, ERR_FULL);
    gate(others, INT32_MAX);
    await_idle(s);

    gate(s, 0);
    gate(others, 0);
    add(s, all, 1, 2);
    await(s, &s->running, 1);
    for (int i = 3; i < 5; i++) {
        plugs[i] = plug_in(others);
        assert_int_equal(pool_submit(s->pool, &plugs[i].job), OK);
        await(others, &others->running, 1);
    }
    add(s, all, 2, 12); /* the queue is full, but the end of the running batch submits them */
    assert_int_equal(s->done_count, 1);
    gate(others, INT32_MAX);
    for (int64_t end = clock_ns() + LONG_NS; pool_read_state(s->pool).queued; (void)poll(NULL, 0, 5))
        assert_true(clock_ns() < end);
    gate(s, INT32_MAX);
    await(s, &s->done_count, 12);
    assert_done(all, 1, 12, OK);
    close_scene(s);
    pthread_cond_destroy(&others->changed);
    pthread_mutex_destroy(&others->lock);
    free(others);
    free(plugs);
    free(all);
}

static void a_batch_that_no_worker_came_for_in_time_is_not_asked(void **state UNUSED)
{
    struct size size = {.connections = 1, .in_flight = 1, .queue_capacity = 8, .most = 3, .capacity = 1000};
    struct scene *s = open_at(shared_url(), size, 0);
    await_connected(s, 1);
    struct thing *all = things(10);
    add(s, all, 0, 10);
    await(s, &s->done_count, 10);
    assert_done(all, 0, 10, ERR_TIMEOUT);
    assert_int_equal(s->runs, 0);
    close_scene(s);
    free(all);
}

static void whoever_is_done_may_ask_again(void **state UNUSED)
{
    struct scene *s =
        open_scene((struct size){.connections = 2, .in_flight = 2, .queue_capacity = 8, .most = 3, .capacity = 1000});
    struct thing *all = things(20);
    for (int i = 0; i < 20; i++)
        all[i].again = 4;
    add(s, all, 0, 20);
    await(s, &s->done_count, 20);
    assert_done(all, 0, 20, OK);
    for (int i = 0; i < 20; i++)
        assert_int_equal(all[i].asked, 5);
    close_scene(s);
    free(all);
}

struct crowd {
    struct scene *scene;
    struct thing *all;
    int from, to, refused;
    pthread_t thread;
};

static void *add_from_thread(void *context)
{
    struct crowd *c = context;
    for (int i = c->from; i < c->to; i++)
        if (batch_add(c->scene->batch, &c->all[i].item) == ERR_FULL) {
            c->refused++;
            c->all[i].number = -1;
        }
    return NULL;
}

static void from_many_threads_through_every_disturbance_each_is_done_once(void **state UNUSED)
{
    enum { CROWDS = 8, EACH = 1000 };
    for (int in_flight = 1; in_flight <= 3; in_flight++) {
        struct scene *s = open_scene(
            (struct size){.connections = 4, .in_flight = in_flight, .queue_capacity = 2, .most = 16, .capacity = 256});
        struct thing *all = things(CROWDS * EACH);
        struct crowd crowds[CROWDS];
        s->conflicts = 25;
        s->broken = 25;
        int refused = 0;
        for (int i = 0; i < CROWDS; i++) {
            crowds[i] = (struct crowd){.scene = s, .all = all, .from = i * EACH, .to = (i + 1) * EACH};
            assert_int_equal(pthread_create(&crowds[i].thread, NULL, add_from_thread, &crowds[i]), 0);
        }
        for (int i = 0; i < CROWDS; i++) {
            pthread_join(crowds[i].thread, NULL);
            refused += crowds[i].refused;
        }
        await(s, &s->done_count, CROWDS * EACH - refused);
        close_scene(s);
        for (int i = 0; i < CROWDS * EACH; i++)
            assert_int_equal(all[i].done, all[i].number >= 0);
        free(all);
    }
}

int main(void)
{
    log_threshold(LOG_ERROR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_are_done_once_in_the_order_they_came),
        cmocka_unit_test(what_arrives_meanwhile_makes_up_the_next_batch),
        cmocka_unit_test(too_many_waiting_are_refused_at_once),
        cmocka_unit_test(after_a_conflict_the_same_ones_are_asked_for_again),
        cmocka_unit_test(a_conflict_that_lasts_or_a_failure_is_told_to_that_batch_alone),
        cmocka_unit_test(as_many_are_under_way_as_may_be_and_no_more),
        cmocka_unit_test(without_a_database_everyone_is_told_before_the_call_returns),
        cmocka_unit_test(when_the_database_goes_all_who_wait_are_told),
        cmocka_unit_test(a_full_pool_refuses_unless_a_batch_under_way_can_take_them_along),
        cmocka_unit_test(a_batch_that_no_worker_came_for_in_time_is_not_asked),
        cmocka_unit_test(whoever_is_done_may_ask_again),
        cmocka_unit_test(from_many_threads_through_every_disturbance_each_is_done_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
