#include "work/shift.h"

#include <stdatomic.h>
#include <time.h>

#include "../base/unit.h"
#include "../pg/server.h"
#include "base/clock.h"

static atomic_bool leading, long_one, fails;
static atomic_int runs, ended;
static _Atomic int64_t every_ms;

static bool leads(void *leader UNUSED)
{
    return atomic_load(&leading);
}

static void moment(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 5 * NS_PER_MS}, NULL);
}

static enum err run(void *context UNUSED, struct pg *pg, struct shift *shift)
{
    assert_true(pg_is_up(pg));
    atomic_fetch_add(&runs, 1);
    while (atomic_load(&long_one) && shift_goes_on(shift))
        moment();
    atomic_fetch_add(&ended, 1);
    return atomic_load(&fails) ? ERR_DATABASE : OK;
}

static struct shift *begin(bool as_leader, int64_t every)
{
    atomic_store(&leading, as_leader);
    atomic_store(&long_one, false);
    atomic_store(&fails, false);
    atomic_store(&runs, 0);
    atomic_store(&ended, 0);
    atomic_store(&every_ms, every);
    struct why why = {""};
    struct shift *s =
        shift_start(&(struct shift_config){"test", shared_url(), &every_ms, leads, NULL, run, NULL}, &why);
    assert_non_null(s);
    return s;
}

static void await_runs(int wanted)
{
    for (int64_t until = clock_ns() + 60 * NS_PER_S; atomic_load(&runs) < wanted;) {
        assert_true(clock_ns() < until);
        moment();
    }
}

static void only_a_leader_works_and_a_new_one_at_once(void **state UNUSED)
{
    struct shift *s = begin(false, INT64_C(3600000));
    nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    assert_int_equal(atomic_load(&runs), 0);
    atomic_store(&leading, true);
    await_runs(1);
    atomic_store(&leading, false);
    nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    atomic_store(&leading, true);
    await_runs(2);
    shift_stop(s);
}

static void it_is_done_every_so_often(void **state UNUSED)
{
    struct shift *s = begin(true, 10);
    await_runs(5);
    shift_stop(s);
}

static void what_failed_is_done_again_soon(void **state UNUSED)
{
    struct shift *s = begin(true, INT64_C(3600000));
    atomic_store(&fails, true);
    atomic_store(&leading, false);
    nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    atomic_store(&runs, 0);
    atomic_store(&leading, true);
    await_runs(2);
    shift_stop(s);
}

static void long_work_ends_when_another_leads_and_when_the_program_stops(void **state UNUSED)
{
    struct shift *s = begin(false, INT64_C(3600000));
    atomic_store(&long_one, true);
    atomic_store(&leading, true);
    await_runs(1);
    atomic_store(&leading, false);
    while (atomic_load(&ended) == 0)
        moment();
    atomic_store(&leading, true);
    await_runs(2);
    shift_stop(s);
    assert_int_equal(atomic_load(&ended), 2);
}

int main(void)
{
    const struct CMUnitTest promises[] = {
        cmocka_unit_test(only_a_leader_works_and_a_new_one_at_once),
        cmocka_unit_test(it_is_done_every_so_often),
        cmocka_unit_test(what_failed_is_done_again_soon),
        cmocka_unit_test(long_work_ends_when_another_leads_and_when_the_program_stops),
    };
    return cmocka_run_group_tests(promises, NULL, NULL);
}
