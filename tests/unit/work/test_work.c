/* The work queue: every item is run, by one instance at a time, despite crashes, stalls and outages of the database. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "database.h"
#include "pg/tx.h"
#include "work/work.h"

#define SOON (clock_ns() + 60 * NS_PER_S)
#define LEASE_NS (3 * NS_PER_S)
#define POLL_NS (NS_PER_S / 20)
#define OPEN "SELECT count(*) FROM reclaim.work_items WHERE state = 'open'"
#define ALL "SELECT count(*) FROM reclaim.work_items"
#define RUNS "SELECT count(*) FROM runs"
#define LEASED "SELECT count(*) FROM reclaim.work_items WHERE leased_until > clock_timestamp()"

/* Every run inserts a row, so that the runs of all processes can be counted. */
static const struct statement note_run = {"note_run", "INSERT INTO runs (item, who) VALUES ($1::int8, $2::text)", 2,
                                          ""};

static const char *me = "parent";

static enum err record_run(const struct work_item *item, struct pg *pg, int64_t deadline_ns)
{
    struct pg_call call = {.ask = &note_run, .args = {pg_i64(item->id), pg_text(me)}};
    return pg_ask(pg, &call, deadline_ns);
}

static enum err fail_always(struct work_item *item, struct pg *pg, int64_t deadline_ns)
{
    return record_run(item, pg, deadline_ns) ? ERR_DATABASE : ERR_CLOSED;
}

static enum err refuse(struct work_item *item, struct pg *pg, int64_t deadline_ns)
{
    return record_run(item, pg, deadline_ns) ? ERR_DATABASE : ERR_INPUT;
}

static enum err write_row(struct work_item *item, struct pg *pg, int64_t deadline_ns)
{
    return record_run(item, pg, deadline_ns);
}

/* Records its run, then keeps the item until `gate_open` is set, checking its lease meanwhile. */
struct held {
    struct work_item *item;
    struct job job;
    struct work_note back;
    struct work_timer timer;
    bool leaving, recording;
};

static atomic_int gate_open, waits, seen_lost, abandoned_items, forgotten;

static void end_held(struct held *h, enum work_outcome outcome)
{
    work_cancel(h->item->engine, &h->timer);
    work_end(h->item, outcome, NULL);
}

static void check_held(struct work_timer *timer)
{
    struct held *h = OWNER_OF(timer, struct held, timer);
    enum work_lease hold = work_lease(h->item, 0);
    if (hold == WORK_WAIT)
        atomic_fetch_add(&waits, 1);
    if (hold == WORK_LOST) {
        atomic_fetch_add(&seen_lost, 1);
        end_held(h, WORK_DROPPED);
    } else if (hold == WORK_MINE && atomic_load(&gate_open)) {
        end_held(h, WORK_DONE);
    } else {
        work_at(h->item->engine, timer, clock_ns() + 10 * NS_PER_MS);
    }
}

static enum err record_job(struct job *job, struct pg *pg)
{
    return record_run(OWNER_OF(job, struct held, job)->item, pg, job->deadline_ns);
}

static void recorded(struct job *job, enum err e)
{
    struct held *h = OWNER_OF(job, struct held, job);
    (void)e;
    work_post(h->item->engine, &h->back);
}

static void after_recording(struct work_note *back)
{
    struct held *h = OWNER_OF(back, struct held, back);
    h->recording = false;
    if (h->leaving)
        end_held(h, WORK_RETURNED);
    else
        check_held(&h->timer);
}

static void start_held(struct work_item *item)
{
    struct held *h = item->handed ? item->handed : calloc(1, sizeof *h);
    item->handed = h;
    h->item = item;
    h->timer.due = check_held;
    h->back.run = after_recording;
    h->recording = true;
    h->job = (struct job){.run = record_job, .done = recorded, .deadline_ns = SOON};
    if (pool_submit(work_pool(item->engine), &h->job)) {
        h->recording = false;
        end_held(h, WORK_AGAIN);
    }
}

static void abandon_held(struct work_item *item)
{
    struct held *h = item->handed;
    atomic_fetch_add(&abandoned_items, 1);
    h->leaving = true;
    if (!h->recording)
        end_held(h, WORK_RETURNED);
}

static void forget_held(void *handed)
{
    atomic_fetch_add(&forgotten, 1);
    free(handed);
}

static const struct work_kind plain = {
    .name = "plain", .tries_max = 3, .pause_first_ns = 10 * NS_PER_MS, .pause_most_ns = NS_PER_S, .run = write_row};
static const struct work_kind failing = {.name = "failing",
                                         .tries_max = 4,
                                         .pause_first_ns = 100 * NS_PER_MS,
                                         .pause_most_ns = NS_PER_S,
                                         .run = fail_always};
static const struct work_kind refusing = {.name = "refusing", .tries_max = 4, .run = refuse};
static const struct work_kind holding = {.name = "holding",
                                         .tries_max = 9,
                                         .pause_first_ns = 10 * NS_PER_MS,
                                         .pause_most_ns = NS_PER_S,
                                         .start = start_held,
                                         .abandon = abandon_held,
                                         .forget = forget_held};
static const struct work_kind *const kinds[] = {&plain, &failing, &refusing, &holding};

/* An instance: a pool and an engine. */
struct instance {
    struct pool *pool;
    struct engine *engine;
};

static struct instance begin(void)
{
    struct instance i = {.pool = database_pool(6)};
    struct work_config config = {
        .pool = i.pool, .kinds = kinds, .kind_count = COUNT_OF(kinds), .lease_ns = LEASE_NS, .poll_ns = POLL_NS};
    struct why why = {""};
    i.engine = work_start(&config, &why);
    if (!i.engine)
        fail_msg("no engine: %s", why.text);
    return i;
}

static void end(struct instance *i, int64_t limit_ns)
{
    work_stop(i->engine, clock_ns() + limit_ns);
    pool_stop(i->pool, SOON);
    work_free(i->engine);
}

static int64_t promise(struct instance *i, const struct work_kind *kind, bool commit)
{
    AUTO(pg) struct pg *pg = pg_new(database_url(), PG_PREPARE_OFF);
    struct why why = {""};
    assert_int_equal(pg_connect(pg, SOON, &why), OK);
    struct tx *tx = tx_begin(pg, SOON);
    struct pg_call insert;
    AUTO(work_item) struct work_item *item = work_promise(i->engine, kind, "{\"n\": 1}", &insert);
    assert_non_null(item);
    if (kind == &holding)
        item->handed = calloc(1, sizeof(struct held));
    int64_t id = 0;
    if (commit) {
        assert_int_equal(tx_commit(tx, &insert, 1), OK);
        work_inserted(item, &insert);
        id = item->id;
        work_kick(&item);
        assert_null(item);
    } else {
        assert_int_equal(tx_trip(tx, &insert, 1), OK);
        tx_cleanup(&tx);
    }
    return id;
}

static int fresh(void **state UNUSED)
{
    database_run("TRUNCATE reclaim.work_items; DROP TABLE IF EXISTS runs;"
                 "CREATE TABLE runs (item bigint, who text, at timestamptz DEFAULT clock_timestamp())");
    atomic_store(&gate_open, 0);
    atomic_store(&waits, 0);
    atomic_store(&seen_lost, 0);
    atomic_store(&abandoned_items, 0);
    atomic_store(&forgotten, 0);
    return 0;
}

static void await_count(atomic_int *count, int wanted)
{
    for (int64_t end_ns = SOON; atomic_load(count) < wanted;) {
        assert_true(clock_ns() < end_ns);
        (void)poll(NULL, 0, 5);
    }
}

static void every_statement_fits_the_schema(void **state UNUSED)
{
    database_check(work_statements, work_statement_count);
}

static void the_table_is_counted(void **state UNUSED)
{
    database_run("INSERT INTO reclaim.work_items (kind, payload, state, due_at) VALUES ('other', '{}', 'dead', now()),"
                 " ('other', '{}', 'dead', now()), ('other', '{}', 'open', now() - interval '1 hour')");
    struct instance i = begin();
    for (int64_t end_ns = SOON; work_state(i.engine).dead != 2;) {
        assert_true(clock_ns() < end_ns);
        (void)poll(NULL, 0, 5);
    }
    struct work_state seen = work_state(i.engine);
    assert_int_equal(seen.waiting, 1);
    assert_true(seen.oldest_due_ms >= INT64_C(3600000));
    end(&i, NS_PER_S);
}

static void a_promised_item_runs_after_its_commit_and_is_gone(void **state UNUSED)
{
    struct instance i = begin();
    promise(&i, &plain, true);
    database_await(RUNS, 1);
    database_await(ALL, 0);
    end(&i, NS_PER_S);
}

static void what_was_not_committed_never_runs(void **state UNUSED)
{
    struct instance i = begin();
    promise(&i, &holding, false);
    assert_int_equal(atomic_load(&forgotten), 1);
    promise(&i, &plain, true);
    database_await(RUNS, 1);
    assert_int_equal(database_number("SELECT count(*) FROM runs r JOIN reclaim.work_items w ON w.id = r.item"
                                     " WHERE w.kind = 'holding'"),
                     0);
    end(&i, NS_PER_S);
    assert_int_equal(database_number(ALL), 0);
}

static void an_item_is_leased_from_its_first_moment(void **state UNUSED)
{
    struct instance i = begin();
    promise(&i, &holding, true);
    assert_int_equal(database_number("SELECT count(*) FROM reclaim.work_items WHERE leased_by > 0 AND tries = 1 AND"
                                     " leased_until > created_at AND payload = '{\"n\": 1}'"),
                     1);
    atomic_store(&gate_open, 1);
    database_await(ALL, 0);
    end(&i, NS_PER_S);
}

static void items_of_kinds_unknown_here_are_left_to_others(void **state UNUSED)
{
    database_run("INSERT INTO reclaim.work_items (kind, payload) VALUES ('other', '{}'), ('plain', '{}')");
    struct instance i = begin();
    database_await(RUNS, 1);
    database_await(ALL, 1);
    end(&i, NS_PER_S);
    assert_int_equal(database_number("SELECT tries FROM reclaim.work_items WHERE kind = 'other'"), 0);
}

static void ten_thousand_items_are_drained_exactly_once_by_two_instances(void **state UNUSED)
{
    database_run("INSERT INTO reclaim.work_items (kind, payload) SELECT 'plain', '{}' FROM generate_series(1, 10000)");
    struct instance a = begin(), b = begin();
    database_await(ALL, 0);
    end(&a, NS_PER_S);
    end(&b, NS_PER_S);
    assert_int_equal(database_number(RUNS), 10000);
    assert_int_equal(database_number("SELECT count(DISTINCT item) FROM runs"), 10000);
}

static void a_failing_item_is_tried_with_growing_pauses_and_then_buried(void **state UNUSED)
{
    struct instance i = begin();
    promise(&i, &failing, true);
    database_await("SELECT count(*) FROM reclaim.work_items WHERE state = 'dead'", 1);
    end(&i, NS_PER_S);
    assert_int_equal(database_number(RUNS), 4);
    assert_int_equal(database_number("SELECT tries FROM reclaim.work_items WHERE last_error = 'closed'"
                                     " AND leased_until IS NULL"),
                     4);
    /* Pauses of 100, 200 and 400 ms, half to one and a half of each. */
    assert_int_equal(database_number("SELECT count(*) FROM (SELECT at - lag(at) OVER (ORDER BY at) AS pause,"
                                     " row_number() OVER (ORDER BY at) AS n FROM runs) r"
                                     " WHERE pause >= interval '50 ms' * (2 ^ (n - 2))"),
                     3);
}

static void what_can_never_do_is_buried_at_once(void **state UNUSED)
{
    struct instance i = begin();
    promise(&i, &refusing, true);
    database_await("SELECT count(*) FROM reclaim.work_items WHERE state = 'dead'", 1);
    end(&i, NS_PER_S);
    assert_int_equal(database_number(RUNS), 1);
}

static void an_item_whose_runs_never_end_is_buried(void **state UNUSED)
{
    database_run("INSERT INTO reclaim.work_items (kind, payload, tries, leased_by, leased_until)"
                 " VALUES ('plain', '{}', 3, 5, now())");
    struct instance i = begin();
    database_await("SELECT count(*) FROM reclaim.work_items WHERE state = 'dead'", 1);
    end(&i, NS_PER_S);
    assert_int_equal(database_number(RUNS), 0);
}

static void a_long_run_keeps_its_lease(void **state UNUSED)
{
    struct instance a = begin(), b = begin();
    promise(&a, &holding, true);
    database_await("SELECT count(*) FROM reclaim.work_items"
                   " WHERE clock_timestamp() > created_at + interval '7 seconds' AND leased_until > clock_timestamp()",
                   1);
    assert_int_equal(database_number(RUNS), 1);
    atomic_store(&gate_open, 1);
    database_await(ALL, 0);
    end(&a, NS_PER_S);
    end(&b, NS_PER_S);
    assert_int_equal(database_number(RUNS), 1);
    assert_int_equal(atomic_load(&seen_lost), 0);
}

static void an_item_taken_by_another_is_let_go(void **state UNUSED)
{
    struct instance i = begin();
    promise(&i, &holding, true);
    database_await(RUNS, 1);
    database_run("UPDATE reclaim.work_items SET leased_by = 7, leased_until = now() + interval '1 hour'");
    await_count(&seen_lost, 1);
    end(&i, 10 * NS_PER_S);
    assert_int_equal(database_number("SELECT count(*) FROM reclaim.work_items WHERE leased_by = 7"), 1);
}

static void a_stopping_instance_gives_back_what_it_has_not_done(void **state UNUSED)
{
    struct instance a = begin();
    promise(&a, &holding, true);
    database_await(RUNS, 1);
    end(&a, 0);
    assert_int_equal(atomic_load(&abandoned_items), 1);
    assert_int_equal(database_number("SELECT count(*) FROM reclaim.work_items WHERE leased_until IS NULL"
                                     " AND leased_by IS NULL AND state = 'open'"),
                     1);
    atomic_store(&gate_open, 1);
    struct instance b = begin();
    database_await(ALL, 0);
    end(&b, NS_PER_S);
    assert_int_equal(database_number(RUNS), 2);
}

static void what_is_handed_over_too_late_is_left_in_the_table(void **state UNUSED)
{
    struct instance a = begin();
    work_stop(a.engine, clock_ns());
    promise(&a, &holding, true);
    assert_int_equal(atomic_load(&forgotten), 1);
    pool_stop(a.pool, SOON);
    work_free(a.engine);
    assert_int_equal(database_number(OPEN), 1);
}

static void a_flow_that_hands_over_after_its_lease_has_ended_makes_no_second_run(void **state UNUSED)
{
    struct instance i = begin();
    AUTO(pg) struct pg *pg = pg_new(database_url(), PG_PREPARE_OFF);
    struct why why = {""};
    assert_int_equal(pg_connect(pg, SOON, &why), OK);
    struct pg_call insert;
    AUTO(work_item) struct work_item *item = work_promise(i.engine, &holding, "{}", &insert);
    assert_non_null(item);
    item->handed = calloc(1, sizeof(struct held));
    assert_int_equal(pg_ask(pg, &insert, SOON), OK);
    work_inserted(item, &insert);
    database_await(RUNS, 1); /* claimed by the same engine, since it was not handed over in time */
    work_kick(&item);
    await_count(&forgotten, 1);
    atomic_store(&gate_open, 1);
    database_await(ALL, 0);
    end(&i, NS_PER_S);
    assert_int_equal(database_number(RUNS), 1);
}

/* Forbidding connections also ends the existing ones, except that of the process `kept`. */
static void allow_connections(bool allowed, int64_t kept)
{
    char script[512];
    const char *name = strstr(database_url(), "dbname=") + 7;
    AUTO(pg) struct pg *pg = pg_new(getenv("RECLAIM_TEST_DATABASE_URL"), PG_PREPARE_OFF);
    struct why why = {""};
    assert_int_equal(pg_connect(pg, SOON, &why), OK);
    snprintf(script, sizeof script, "ALTER DATABASE %s ALLOW_CONNECTIONS %d", name, allowed);
    assert_int_equal(pg_script(pg, script, SOON, &why), OK);
    if (allowed)
        return;
    snprintf(script, sizeof script,
             "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = '%s' AND pid <> %lld", name,
             (long long)kept);
    assert_int_equal(pg_script(pg, script, SOON, &why), OK);
}

static void who_runs_while_the_database_is_away_waits_once_its_lease_is_over(void **state UNUSED)
{
    struct instance i = begin();
    for (int n = 0; n < 20; n++)
        promise(&i, &holding, true);
    database_await(RUNS, 20);
    allow_connections(false, 0);
    await_count(&waits, 1);
    atomic_store(&gate_open, 1);
    await_count(&waits, atomic_load(&waits) + 20); /* every item has checked its lease again */
    assert_int_equal(work_state(i.engine).in_memory, 20);
    allow_connections(true, 0);
    database_await(ALL, 0);
    end(&i, NS_PER_S);
    assert_int_equal(database_number(RUNS), 20);
}

static void what_ended_while_the_database_was_away_is_told_afterwards(void **state UNUSED)
{
    AUTO(pg) struct pg *pg = pg_new(database_url(), PG_PREPARE_OFF);
    struct why why = {""};
    assert_int_equal(pg_connect(pg, SOON, &why), OK);
    struct instance i = begin();
    for (int n = 0; n < 20; n++)
        promise(&i, &holding, true);
    database_await(RUNS, 20);
    allow_connections(false, database_number_by(pg, "SELECT pg_backend_pid()::int8"));
    atomic_store(&gate_open, 1);
    for (int64_t end_ns = SOON; database_number_by(pg, LEASED) > 0; (void)poll(NULL, 0, 20))
        assert_true(clock_ns() < end_ns);
    allow_connections(true, 0);
    database_await(ALL, 0);
    end(&i, NS_PER_S);
    assert_int_equal(database_number(RUNS), 20);
}

/* Child processes: this program again, as another instance. */

static pid_t spawn(const char *role, int *ret_in)
{
    int in[2];
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(in[0], 0);
        execl("/proc/self/exe", "test_queue", role, database_url(), NULL);
        _exit(127);
    }
    close(in[0]);
    *ret_in = in[1];
    return pid;
}

static void a_killed_process_s_items_are_taken_over_once_its_leases_end(void **state UNUSED)
{
    int in;
    pid_t child = spawn("hold", &in);
    database_await("SELECT count(*) FROM runs WHERE who = 'child'", 10);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(in);
    database_run("CREATE TABLE leases AS SELECT id, leased_until FROM reclaim.work_items");
    assert_int_equal(database_number("SELECT count(*) FROM leases"), 10);
    atomic_store(&gate_open, 1);
    struct instance i = begin();
    database_await(ALL, 0);
    end(&i, NS_PER_S);
    assert_int_equal(database_number("SELECT count(*) FROM runs r JOIN leases l ON l.id = r.item"
                                     " WHERE who = 'parent' AND r.at >= l.leased_until"),
                     10);
    assert_int_equal(database_number("SELECT count(*) FROM runs WHERE who = 'parent'"), 10);
    database_run("DROP TABLE leases");
}

static void a_stalled_process_notices_that_its_lease_is_over_before_it_acts(void **state UNUSED)
{
    int in;
    pid_t child = spawn("hold", &in);
    database_await("SELECT count(*) FROM runs WHERE who = 'child'", 10);
    kill(child, SIGSTOP);
    struct instance i = begin();
    database_await("SELECT count(*) FROM runs WHERE who = 'parent'", 10);
    close(in); /* sets the child's gate_open: it would end its items now */
    kill(child, SIGCONT);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), 10); /* the number of items that it found lost */
    assert_int_equal(database_number(OPEN), 10);
    atomic_store(&gate_open, 1);
    database_await(ALL, 0);
    end(&i, NS_PER_S);
    assert_int_equal(database_number("SELECT count(*) FROM runs"), 20);
}

static void *open_gate(void *context)
{
    (void)context;
    char byte;
    while (read(0, &byte, 1) > 0)
        ;
    atomic_store(&gate_open, 1);
    return NULL;
}

/* Inserts ten items and keeps them until its input is closed; exits with the number of items lost. */
static int hold_items(void)
{
    pthread_t thread;
    me = "child";
    pthread_create(&thread, NULL, open_gate, NULL);
    struct instance i = begin();
    for (int n = 0; n < 10; n++)
        promise(&i, &holding, true);
    await_count(&forgotten, 10);
    pthread_join(thread, NULL);
    end(&i, 10 * NS_PER_S);
    return atomic_load(&seen_lost);
}

static int make(void **state UNUSED)
{
    database_make("work");
    return 0;
}

static int drop(void **state UNUSED)
{
    database_drop();
    return 0;
}

int main(int argc, char **argv)
{
    log_threshold(LOG_ERROR);
    if (argc == 3 && strcmp(argv[1], "hold") == 0) {
        database_use(argv[2]);
        return hold_items();
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_statement_fits_the_schema, fresh),
        cmocka_unit_test_setup(the_table_is_counted, fresh),
        cmocka_unit_test_setup(a_promised_item_runs_after_its_commit_and_is_gone, fresh),
        cmocka_unit_test_setup(what_was_not_committed_never_runs, fresh),
        cmocka_unit_test_setup(an_item_is_leased_from_its_first_moment, fresh),
        cmocka_unit_test_setup(items_of_kinds_unknown_here_are_left_to_others, fresh),
        cmocka_unit_test_setup(ten_thousand_items_are_drained_exactly_once_by_two_instances, fresh),
        cmocka_unit_test_setup(a_failing_item_is_tried_with_growing_pauses_and_then_buried, fresh),
        cmocka_unit_test_setup(what_can_never_do_is_buried_at_once, fresh),
        cmocka_unit_test_setup(an_item_whose_runs_never_end_is_buried, fresh),
        cmocka_unit_test_setup(a_long_run_keeps_its_lease, fresh),
        cmocka_unit_test_setup(an_item_taken_by_another_is_let_go, fresh),
        cmocka_unit_test_setup(a_stopping_instance_gives_back_what_it_has_not_done, fresh),
        cmocka_unit_test_setup(what_is_handed_over_too_late_is_left_in_the_table, fresh),
        cmocka_unit_test_setup(a_flow_that_hands_over_after_its_lease_has_ended_makes_no_second_run, fresh),
        cmocka_unit_test_setup(who_runs_while_the_database_is_away_waits_once_its_lease_is_over, fresh),
        cmocka_unit_test_setup(what_ended_while_the_database_was_away_is_told_afterwards, fresh),
        cmocka_unit_test_setup(a_killed_process_s_items_are_taken_over_once_its_leases_end, fresh),
        cmocka_unit_test_setup(a_stalled_process_notices_that_its_lease_is_over_before_it_acts, fresh),
    };
    return cmocka_run_group_tests(tests, make, drop);
}
