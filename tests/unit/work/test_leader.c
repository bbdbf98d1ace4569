#include "work/leader.h"

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../base/unit.h"
#include "../pg/server.h"
#include "base/clock.h"
#include "base/log.h"

/* Sessions that tried the lock and did not get it. */
#define REFUSED                                                                                                        \
    "SELECT count(*) FROM pg_stat_activity a WHERE datname = current_database() AND state = 'idle'"                    \
    " AND query LIKE '%pg_try_advisory_lock(1919247212, 2)%' AND pid <> pg_backend_pid()"                              \
    " AND NOT EXISTS (SELECT FROM pg_locks l WHERE l.pid = a.pid AND locktype = 'advisory' AND granted)"

static atomic_int runs;

static enum err count_run(void *context UNUSED, struct pg *pg UNUSED, int64_t deadline_ns UNUSED)
{
    atomic_fetch_add(&runs, 1);
    return OK;
}

static struct leader *leader_new(const char *url)
{
    struct duty duty = {"count", 3600 * NS_PER_S, count_run, NULL};
    struct why why = {""};
    struct leader *l = leader_start(&(struct leader_config){url, &duty, 1}, &why);
    assert_non_null(l);
    return l;
}

static bool comes_to_lead(const struct leader *l)
{
    struct pollfd on = {leader_fd(l), POLLIN, 0};
    return poll(&on, 1, 60000) == 1 && leader_is_me(l);
}

static void assert_refused(const struct leader *l)
{
    /* Until it has noticed that its connection was cut it still counts itself the leader. */
    struct pollfd on = {leader_fd(l), POLLIN, 0};
    for (int64_t until = clock_ns() + 60 * NS_PER_S;
         number_from(shared_url(), REFUSED) == 0 || poll(&on, 1, 0) != 0 || leader_is_me(l);)
        assert_true(clock_ns() < until);
}

static void await_runs(int wanted)
{
    for (int64_t until = clock_ns() + 60 * NS_PER_S; atomic_load(&runs) < wanted;) {
        assert_true(clock_ns() < until);
        nanosleep(&(struct timespec){.tv_nsec = 20 * NS_PER_MS}, NULL);
    }
}

static void one_leads_and_another_follows_when_it_stops(void **state UNUSED)
{
    atomic_store(&runs, 0);
    struct leader *first = leader_new(shared_url());
    assert_true(comes_to_lead(first));
    await_runs(1);
    struct leader *second = leader_new(shared_url());
    assert_refused(second);
    leader_stop(first);
    assert_true(comes_to_lead(second));
    await_runs(2); /* each ran its duty when it became the leader */
    leader_stop(second);
    assert_int_equal(atomic_load(&runs), 2);
}

static bool takes_its_lock(struct pg *pg)
{
    static const struct statement take = {"take", "SELECT pg_try_advisory_lock(1919247212, 2) AS mine", 0, "mine:bool"};
    struct pg_call call = {.ask = &take};
    assert_int_equal(pg_ask(pg, &call, clock_ns() + 30 * NS_PER_S), OK);
    return pg_get_bool(&call, 0, 0);
}

static void a_leader_whose_connection_is_cut_leads_no_more_until_it_has_the_lock_again(void **state UNUSED)
{
    struct leader *l = leader_new(shared_url());
    assert_true(comes_to_lead(l));
    struct pg *pg = must_connect(shared_url(), PG_PREPARE_OFF);
    /* A leader that reconnects at once may get the lock first. */
    while (!takes_its_lock(pg))
        must_run(pg, "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted"
                     " AND pid <> pg_backend_pid()"
                     " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())");
    assert_refused(l);
    pg_free(pg);
    assert_true(comes_to_lead(l));
    leader_stop(l);
}

static void a_leader_killed_outright_is_followed(void **state UNUSED)
{
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    const char *url = shared_url();
    pid_t child = fork();
    if (child == 0) {
        struct leader *l = leader_new(url);
        bool leads = comes_to_lead(l);
        ssize_t written = write(ready[1], &leads, sizeof leads);
        (void)written;
        pause();
        _exit(0);
    }
    bool leads = false;
    assert_int_equal(read(ready[0], &leads, sizeof leads), sizeof leads);
    assert_true(leads);
    struct leader *next = leader_new(url);
    assert_refused(next);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_true(comes_to_lead(next));
    leader_stop(next);
    close(ready[0]);
    close(ready[1]);
}

/* Lines of the log that contain this, until there are so many. */
static void await_lines(int fd, const char *word, int wanted)
{
    char line[4096];
    size_t len = 0;
    for (int found = 0; found < wanted;) {
        struct pollfd on = {fd, POLLIN, 0};
        assert_int_equal(poll(&on, 1, 60000), 1);
        assert_int_equal(read(fd, line + len, 1), 1);
        if (line[len] != '\n' && len + 2 < sizeof line) {
            len++;
            continue;
        }
        line[len] = '\0';
        found += strstr(line, word) != NULL;
        len = 0;
    }
}

static void behind_a_pooler_none_leads(void **state UNUSED)
{
    struct pooler *pooler = pooler_start(shared_url());
    struct leader *several[3];
    int log[2];
    assert_int_equal(pipe(log), 0);
    log_to_fd(log[1]);
    atomic_store(&runs, 0);
    for (size_t i = 0; i < COUNT_OF(several); i++)
        several[i] = leader_new(pooler_url(pooler));
    await_lines(log[0], "RECLAIM_DATABASE_DIRECT_URL", COUNT_OF(several));
    for (size_t i = 0; i < COUNT_OF(several); i++) {
        assert_false(leader_is_me(several[i]));
        leader_stop(several[i]);
    }
    log_to_fd(STDERR_FILENO);
    close(log[0]);
    close(log[1]);
    assert_int_equal(atomic_load(&runs), 0);
    pooler_free(pooler);
}

/* Releases the leader's own lock, as if another backend answered now. */
static enum err lose_lock(void *context UNUSED, struct pg *pg, int64_t deadline_ns)
{
    static const struct statement lose = {"lose", "SELECT pg_advisory_unlock(1919247212, 2) AS was", 0, "was:bool"};
    struct pg_call call = {.ask = &lose};
    return pg_ask(pg, &call, deadline_ns);
}

static void a_leader_whose_lock_is_gone_leads_no_more(void **state UNUSED)
{
    struct pg *pg = must_connect(shared_url(), PG_PREPARE_OFF);
    struct duty duty = {"lose", 3600 * NS_PER_S, lose_lock, NULL};
    struct why why = {""};
    struct leader *l = leader_start(&(struct leader_config){shared_url(), &duty, 1}, &why);
    assert_non_null(l);
    assert_true(comes_to_lead(l));
    must_run(pg, "SELECT pg_advisory_lock(1919247212, 2)");
    assert_refused(l);
    pg_free(pg);
    leader_stop(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leader_killed_outright_is_followed), /* first: forks before there are threads */
        cmocka_unit_test(one_leads_and_another_follows_when_it_stops),
        cmocka_unit_test(a_leader_whose_connection_is_cut_leads_no_more_until_it_has_the_lock_again),
        cmocka_unit_test(a_leader_whose_lock_is_gone_leads_no_more),
        cmocka_unit_test(behind_a_pooler_none_leads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
