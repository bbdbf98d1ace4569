#include "work/shift.h"

#include <poll.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "../base/unit.h"
#include "../pg/server.h"
#include "base/clock.h"

#define HOUR_MS INT64_C(3600000)
#define RETRY_NS (5 * NS_PER_S) /* after a failure */

static atomic_bool long_one, fails;
static atomic_int runs, ended;
static atomic_int sleeps;   /* waits without a time-out: until it leads or stops */
static atomic_int waits_at; /* number of ended runs when it last began to wait for the next one */
static _Atomic int64_t every_ms;
static int leads_fd;

int __real_poll(struct pollfd *, nfds_t, int);
int __wrap_poll(struct pollfd *, nfds_t, int);

/* Records what the shift's thread waits for. */
int __wrap_poll(struct pollfd *on, nfds_t count, int ms)
{
    if (ms < 0)
        atomic_fetch_add(&sleeps, 1);
    if (ms > 0)
        atomic_store(&waits_at, atomic_load(&ended));
    return __real_poll(on, count, ms);
}

static void set_leading(bool now)
{
    uint64_t one = 1;
    ssize_t moved = now ? write(leads_fd, &one, sizeof one) : read(leads_fd, &one, sizeof one);
    assert_int_equal(moved, sizeof one);
}

static void pause_briefly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 5 * NS_PER_MS}, NULL);
}

static enum err run(void *context UNUSED, struct pg *pg, struct shift *shift)
{
    assert_true(pg_is_up(pg));
    atomic_fetch_add(&runs, 1);
    while (atomic_load(&long_one) && shift_goes_on(shift))
        pause_briefly();
    atomic_fetch_add(&ended, 1);
    return atomic_load(&fails) ? ERR_DATABASE : OK;
}

static struct shift *begin(bool leading, bool failing)
{
    leads_fd = eventfd(0, EFD_CLOEXEC);
    assert_true(leads_fd >= 0);
    if (leading)
        set_leading(true);
    atomic_store(&long_one, false);
    atomic_store(&fails, failing);
    atomic_store(&runs, 0);
    atomic_store(&ended, 0);
    atomic_store(&sleeps, 0);
    atomic_store(&waits_at, 0);
    atomic_store(&every_ms, HOUR_MS);
    struct why why = {""};
    struct shift *s = shift_start(&(struct shift_config){"test", shared_url(), &every_ms, leads_fd, run, NULL}, &why);
    assert_non_null(s);
    return s;
}

static void end(struct shift *s)
{
    shift_stop(s);
    close(leads_fd);
}

static void await(atomic_int *count, int wanted)
{
    for (int64_t until = clock_ns() + 60 * NS_PER_S; atomic_load(count) < wanted; pause_briefly())
        assert_true(clock_ns() < until);
}

static void an_instance_that_does_not_lead_sleeps_until_it_leads(void **state UNUSED)
{
    struct shift *s = begin(false, false);
    await(&sleeps, 1);
    assert_int_equal(atomic_load(&runs), 0);
    set_leading(true);
    await(&runs, 1);
    set_leading(false);
    await(&sleeps, 2);
    set_leading(true);
    await(&runs, 2);
    end(s);
    assert_int_equal(atomic_load(&sleeps), 2);
}

static void it_is_done_every_so_often_and_not_in_between(void **state UNUSED)
{
    struct shift *s = begin(true, false);
    for (int done = 1; done <= 3; done++) {
        await(&waits_at, done);
        assert_int_equal(atomic_load(&runs), done);
        clock_shift(HOUR_MS * NS_PER_MS);
    }
    await(&runs, 4);
    end(s);
}

static void a_moved_clock_of_the_sandbox_has_it_done_at_once(void **state UNUSED)
{
    struct shift *s = begin(true, false);
    await(&waits_at, 1);
    clock_note_sandbox(true, 1000 * HOUR_MS);
    await(&runs, 2);
    await(&waits_at, 2);
    clock_note_sandbox(true, 0); /* set back */
    await(&runs, 3);
    await(&waits_at, 3);
    end(s);
    assert_int_equal(atomic_load(&runs), 3);
}

static void what_failed_is_done_again_soon(void **state UNUSED)
{
    struct shift *s = begin(true, true);
    await(&waits_at, 1);
    clock_shift(RETRY_NS);
    await(&runs, 2);
    end(s);
}

static void long_work_ends_when_another_leads_and_when_the_program_stops(void **state UNUSED)
{
    struct shift *s = begin(false, false);
    atomic_store(&long_one, true);
    set_leading(true);
    await(&runs, 1);
    set_leading(false);
    await(&ended, 1);
    set_leading(true);
    await(&runs, 2);
    end(s);
    assert_int_equal(atomic_load(&ended), 2);
}

int main(void)
{
    const struct CMUnitTest promises[] = {
        cmocka_unit_test(an_instance_that_does_not_lead_sleeps_until_it_leads),
        cmocka_unit_test(it_is_done_every_so_often_and_not_in_between),
        cmocka_unit_test(a_moved_clock_of_the_sandbox_has_it_done_at_once),
        cmocka_unit_test(what_failed_is_done_again_soon),
        cmocka_unit_test(long_work_ends_when_another_leads_and_when_the_program_stops),
    };
    return cmocka_run_group_tests(promises, NULL, NULL);
}
