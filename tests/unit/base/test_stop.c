#include "base/stop.h"

#include <pthread.h>

#include "../base/unit.h"

static void it_is_raised_once_and_stays_so(void **state UNUSED)
{
    int fd = stop_new();
    assert_true(fd >= 0);
    assert_false(stop_is_raised(fd));
    assert_false(stop_wait(fd, 1));
    stop_raise(fd);
    stop_raise(fd);
    assert_true(stop_wait(fd, -1));
    assert_true(stop_is_raised(fd));
    stop_free(fd);
}

static void *wait_for_it(void *fd)
{
    return stop_wait(*(int *)fd, -1) ? fd : NULL;
}

static void every_thread_that_waits_sees_it(void **state UNUSED)
{
    int fd = stop_new();
    pthread_t threads[3];
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, wait_for_it, &fd), 0);
    stop_raise(fd);
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        void *saw = NULL;
        assert_int_equal(pthread_join(threads[i], &saw), 0);
        assert_ptr_equal(saw, &fd);
    }
    stop_free(fd);
    stop_free(-1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_raised_once_and_stays_so),
        cmocka_unit_test(every_thread_that_waits_sees_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
