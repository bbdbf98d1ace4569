#include "base/queue.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "allocations.h"
#include "base/clock.h"
#include "unit.h"

#define HOUR (3600 * NS_PER_S)

/* The clock is shifted inside the wait, because another thread could not reliably do so at that moment. */
static _Atomic int64_t shift_in_wait_ns;
/* Disables the regular wake-ups of waiting threads, so that only a signal wakes them. */
static _Atomic bool only_when_woken;
static _Atomic int sleepers; /* threads that began to wait while the above was set */

int __real_pthread_cond_timedwait(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
int __wrap_pthread_cond_timedwait(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);

int __wrap_pthread_cond_timedwait(pthread_cond_t *changed, pthread_mutex_t *lock, const struct timespec *until)
{
    clock_shift(atomic_exchange(&shift_in_wait_ns, 0));
    const struct timespec never = clock_unshifted(INT64_MAX);
    if (only_when_woken) {
        atomic_fetch_add(&sleepers, 1);
        until = &never;
    }
    return __real_pthread_cond_timedwait(changed, lock, until);
}

static bool cond_fails, mutex_fails;

int __real_pthread_cond_init(pthread_cond_t *, const pthread_condattr_t *);
int __wrap_pthread_cond_init(pthread_cond_t *, const pthread_condattr_t *);
int __real_pthread_mutex_init(pthread_mutex_t *, const pthread_mutexattr_t *);
int __wrap_pthread_mutex_init(pthread_mutex_t *, const pthread_mutexattr_t *);

int __wrap_pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attributes)
{
    return cond_fails ? ENOMEM : __real_pthread_cond_init(cond, attributes);
}

int __wrap_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes)
{
    return mutex_fails ? ENOMEM : __real_pthread_mutex_init(mutex, attributes);
}

static int items[8]; /* queued by address; the values do not matter */

static void first_in_is_first_out(void **state UNUSED)
{
    struct queue *q = queue_new(3);
    assert_non_null(q);
    /* Enough items to wrap around the ring several times. */
    for (size_t i = 0; i < 50; i++) {
        void *item;
        assert_int_equal(queue_push(q, &items[i % 8]), OK);
        assert_int_equal(queue_push(q, &items[(i + 1) % 8]), OK);
        assert_int_equal(queue_depth(q), 2);
        assert_int_equal(queue_pop(q, 0, &item), OK);
        assert_ptr_equal(item, &items[i % 8]);
        assert_int_equal(queue_pop(q, 0, &item), OK);
        assert_ptr_equal(item, &items[(i + 1) % 8]);
        assert_int_equal(queue_depth(q), 0);
    }
    queue_free(q);
}

static void a_full_queue_refuses_at_once(void **state UNUSED)
{
    struct queue *q = queue_new(2);
    assert_non_null(q);
    assert_int_equal(queue_push(q, &items[0]), OK);
    assert_int_equal(queue_push(q, &items[1]), OK);
    assert_int_equal(queue_push(q, &items[2]), ERR_FULL);
    assert_int_equal(queue_depth(q), 2);
    void *item;
    assert_int_equal(queue_pop(q, 0, &item), OK);
    assert_ptr_equal(item, &items[0]);
    assert_int_equal(queue_push(q, &items[2]), OK);
    assert_int_equal(queue_push(q, &items[3]), ERR_FULL);
    queue_free(q);

    q = queue_new(0);
    assert_non_null(q);
    assert_int_equal(queue_push(q, &items[0]), ERR_FULL);
    assert_int_equal(queue_pop(q, 0, &item), ERR_TIMEOUT);
    queue_free(q);
}

static void a_closed_queue_refuses_and_gives_out_the_rest(void **state UNUSED)
{
    struct queue *q = queue_new(2);
    assert_non_null(q);
    assert_int_equal(queue_push(q, &items[0]), OK);
    queue_close(q);
    queue_close(q);
    assert_int_equal(queue_push(q, &items[1]), ERR_CLOSED);
    void *item;
    assert_int_equal(queue_pop(q, INT64_MAX, &item), OK);
    assert_ptr_equal(item, &items[0]);
    assert_int_equal(queue_pop(q, INT64_MAX, &item), ERR_CLOSED);
    assert_int_equal(queue_pop(q, 0, &item), ERR_CLOSED);
    queue_free(q);
}

static void an_empty_queue_gives_up_at_the_deadline_and_not_before(void **state UNUSED)
{
    struct queue *q = queue_new(2);
    assert_non_null(q);
    void *item = &items[5];
    assert_int_equal(queue_pop(q, INT64_MIN, &item), ERR_TIMEOUT);
    assert_int_equal(queue_pop(q, clock_ns(), &item), ERR_TIMEOUT);
    const int64_t waits_ns[] = {NS_PER_MS, 30 * NS_PER_MS, 1100 * NS_PER_MS}; /* the last includes a regular wake-up */
    for (size_t i = 0; i < COUNT_OF(waits_ns); i++) {
        int64_t deadline_ns = clock_ns() + waits_ns[i];
        assert_int_equal(queue_pop(q, deadline_ns, &item), ERR_TIMEOUT);
        assert_true(clock_ns() >= deadline_ns);
    }
    assert_ptr_equal(item, &items[5]);
    queue_free(q);
}

static void who_sleeps_notices_that_the_clock_was_moved_on(void **state UNUSED)
{
    struct queue *q = queue_new(2);
    assert_non_null(q);
    void *item;
    shift_in_wait_ns = 2 * HOUR;
    assert_int_equal(queue_pop(q, clock_ns() + HOUR, &item), ERR_TIMEOUT);
    assert_true(shift_in_wait_ns == 0);
    clock_shift(-2 * HOUR);
    queue_free(q);
}

static void a_clock_moved_back_makes_nobody_sleep_longer(void **state UNUSED)
{
    struct queue *q = queue_new(2);
    assert_non_null(q);
    void *item;
    const int64_t waits_ns[] = {5 * NS_PER_MS, 1100 * NS_PER_MS};
    for (size_t i = 0; i < COUNT_OF(waits_ns); i++) {
        shift_in_wait_ns = -HOUR;
        assert_int_equal(queue_pop(q, clock_ns() + waits_ns[i], &item), ERR_TIMEOUT);
        assert_true(shift_in_wait_ns == 0);
        clock_shift(HOUR);
    }
    queue_free(q);
}

static void deadlines_mean_the_shifted_clock(void **state UNUSED)
{
    struct queue *q = queue_new(2);
    assert_non_null(q);
    const int64_t shifts_ns[] = {HOUR, -2 * HOUR, HOUR};
    for (size_t i = 0; i < COUNT_OF(shifts_ns); i++) {
        clock_shift(shifts_ns[i]);
        int64_t deadline_ns = clock_ns() + 5 * NS_PER_MS;
        void *item;
        assert_int_equal(queue_pop(q, deadline_ns, &item), ERR_TIMEOUT);
        assert_true(clock_ns() >= deadline_ns);
    }
    queue_free(q);
}

static void *pop_forever(void *queue)
{
    void *item;
    enum err e = queue_pop(queue, INT64_MAX, &item);
    return e == OK ? item : e == ERR_CLOSED ? queue : NULL;
}

/* They are counted under the queue's lock, so any thread that takes the lock afterwards finds them waiting. */
static void start_sleepers(struct queue *q, pthread_t *threads, int count)
{
    sleepers = 0;
    only_when_woken = true;
    for (int i = 0; i < count; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, pop_forever, q), 0);
    while (sleepers < count)
        (void)sched_yield();
}

static void closing_wakes_every_waiter(void **state UNUSED)
{
    struct queue *q = queue_new(2);
    assert_non_null(q);
    pthread_t threads[8];
    start_sleepers(q, threads, COUNT_OF(threads));
    queue_close(q);
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        void *result;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_ptr_equal(result, q);
    }
    only_when_woken = false;
    queue_free(q);
}

static void every_push_wakes_a_waiter(void **state UNUSED)
{
    struct queue *q = queue_new(8);
    assert_non_null(q);
    pthread_t threads[8];
    start_sleepers(q, threads, COUNT_OF(threads));
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        assert_int_equal(queue_push(q, &items[0]), OK);
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        void *result;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_ptr_equal(result, &items[0]);
    }
    only_when_woken = false;
    queue_free(q);
}

#define SIDES 4
#define EACH 5000

struct traffic {
    struct queue *q;
    int numbers[SIDES][EACH];
    _Atomic int received[SIDES][EACH];
    _Atomic int next_side;
    _Atomic bool disorder;
};

static void *produce(void *traffic)
{
    struct traffic *t = traffic;
    int side = atomic_fetch_add(&t->next_side, 1);
    for (int i = 0; i < EACH; i++) {
        while (queue_push(t->q, &t->numbers[side][i]) != OK)
            (void)sched_yield();
    }
    return NULL;
}

static void *consume(void *traffic)
{
    struct traffic *t = traffic;
    int last[SIDES] = {-1, -1, -1, -1};
    void *item;
    while (queue_pop(t->q, INT64_MAX, &item) == OK) {
        ptrdiff_t n = (int *)item - &t->numbers[0][0];
        int side = (int)(n / EACH), i = (int)(n % EACH);
        atomic_fetch_add(&t->received[side][i], 1);
        if (i <= last[side])
            atomic_store(&t->disorder, true);
        last[side] = i;
    }
    return NULL;
}

static void every_item_arrives_once_and_in_order_between_many_threads(void **state UNUSED)
{
    static struct traffic t;
    t.q = queue_new(16);
    assert_non_null(t.q);
    pthread_t producers[SIDES], consumers[SIDES];
    for (size_t i = 0; i < SIDES; i++) {
        assert_int_equal(pthread_create(&consumers[i], NULL, consume, &t), 0);
        assert_int_equal(pthread_create(&producers[i], NULL, produce, &t), 0);
    }
    for (size_t i = 0; i < SIDES; i++)
        assert_int_equal(pthread_join(producers[i], NULL), 0);
    queue_close(t.q);
    for (size_t i = 0; i < SIDES; i++)
        assert_int_equal(pthread_join(consumers[i], NULL), 0);
    assert_false(t.disorder);
    for (size_t side = 0; side < SIDES; side++) {
        for (size_t i = 0; i < EACH; i++)
            assert_int_equal(t.received[side][i], 1);
    }
    assert_int_equal(queue_depth(t.q), 0);
    queue_free(t.q);
}

static void a_queue_that_cannot_be_made_is_no_queue(void **state UNUSED)
{
    fail_allocation(1);
    assert_null(queue_new(4));
    fail_allocation(0);
    assert_null(queue_new(SIZE_MAX));
    assert_null(queue_new(SIZE_MAX / sizeof(void *)));
    cond_fails = true;
    assert_null(queue_new(4));
    cond_fails = false;
    mutex_fails = true;
    assert_null(queue_new(4));
    mutex_fails = false;
    queue_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_in_is_first_out),
        cmocka_unit_test(a_full_queue_refuses_at_once),
        cmocka_unit_test(a_closed_queue_refuses_and_gives_out_the_rest),
        cmocka_unit_test(an_empty_queue_gives_up_at_the_deadline_and_not_before),
        cmocka_unit_test(who_sleeps_notices_that_the_clock_was_moved_on),
        cmocka_unit_test(a_clock_moved_back_makes_nobody_sleep_longer),
        cmocka_unit_test(deadlines_mean_the_shifted_clock),
        cmocka_unit_test(closing_wakes_every_waiter),
        cmocka_unit_test(every_push_wakes_a_waiter),
        cmocka_unit_test(every_item_arrives_once_and_in_order_between_many_threads),
        cmocka_unit_test(a_queue_that_cannot_be_made_is_no_queue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
