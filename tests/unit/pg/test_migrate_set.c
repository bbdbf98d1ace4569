/* Functions and triggers on top of the steps: which set a database has, and who replaces it. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "migrate_scene.h"
#include "server.h"

#define AT_ONCE 8

static const struct migration steps[] = {
    {1, "one", STR("CREATE TABLE reclaim.a (n int, t text);"), STR("DROP TABLE reclaim.a;")},
    {2, "two", STR("CREATE TABLE reclaim.b (n int);"), STR("DROP TABLE reclaim.b;")},
};

#define F(body)                                                                                                        \
    "CREATE OR REPLACE FUNCTION reclaim.f() RETURNS int LANGUAGE sql AS 'SELECT " body "';"                            \
    "REVOKE ALL ON FUNCTION reclaim.f FROM PUBLIC;"
/* It takes rows of a table, and so keeps the table from being dropped; and it calls what comes after it. */
#define E "CREATE OR REPLACE FUNCTION reclaim.e(a reclaim.a) RETURNS int LANGUAGE sql AS 'SELECT reclaim.f() + a.n';"
#define G                                                                                                              \
    "CREATE OR REPLACE FUNCTION reclaim.g() RETURNS trigger LANGUAGE plpgsql"                                          \
    " AS 'BEGIN NEW.n := reclaim.f(); RETURN NEW; END';"
#define TRIGGERS "CREATE OR REPLACE TRIGGER g BEFORE INSERT ON reclaim.a FOR EACH ROW EXECUTE FUNCTION reclaim.g();"

static const struct embedded e = {"sql/functions/x/e.sql", STR(E)}, g = {"sql/functions/x/g.sql", STR(G)},
                             f_one = {"sql/functions/x/f.sql", STR(F("1"))},
                             f_two = {"sql/functions/x/f.sql", STR(F("2"))},
                             f_bad = {"sql/functions/x/f.sql", STR(F("3") "\nSELECT 1 / 0;")},
                             f_slow = {"sql/functions/x/f.sql", STR(F("4") "SELECT pg_sleep(3600);")},
                             triggers = {"sql/triggers.sql", STR(TRIGGERS)};
static const struct embedded *const with_one[] = {&e, &f_one, &g}, *const with_two[] = {&e, &f_two, &g},
                                    *const with_bad[] = {&e, &f_bad, &g}, *const with_slow[] = {&e, &f_slow, &g};

static const struct function_set first = {7, "first", 3, with_one, &triggers},
                                 next = {8, "next", 3, with_two, &triggers},
                                 other = {7, "other", 3, with_two, &triggers}, bad = {8, "bad", 3, with_bad, &triggers},
                                 slow = {8, "slow", 3, with_slow, &triggers};

#define SCHEMA(set) (&(struct schema){steps, COUNT_OF(steps), (set)})

static const char answer[] = "SELECT reclaim.f()";
static const char stored[] =
    "SELECT pg_catalog.string_agg(number || ' ' || checksum, ',') FROM reclaim.schema_functions";
static const char functions[] =
    "SELECT pg_catalog.count(*) FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace"
    " WHERE n.nspname = 'reclaim'";

static void a_set_is_applied_once_and_its_triggers_work(void **state)
{
    struct scene *s = *state;
    struct migrate_report report = must_go_up(s->pg, SCHEMA(&first));
    assert_int_equal(report.set_before, 0);
    assert_int_equal(report.set_after, 7);
    expect(s, stored, "7 first");
    must_run(s->pg, "INSERT INTO reclaim.a VALUES (0, '')");
    expect(s, "SELECT n FROM reclaim.a", "1");

    must_run(s->pg, "DROP TRIGGER g ON reclaim.a");
    report = must_go_up(s->pg, SCHEMA(&first));
    assert_int_equal(report.set_before, 7);
    assert_int_equal(report.set_after, 7);
    expect(s, "SELECT pg_catalog.count(*) FROM pg_catalog.pg_trigger WHERE tgname = 'g'", "0"); /* nothing was run */
}

static void a_higher_number_replaces_the_set(void **state)
{
    struct scene *s = *state;
    must_go_up(s->pg, SCHEMA(&first));
    admin("CREATE ROLE %s_team", s->name);
    must_run(s->pg, "CREATE FUNCTION reclaim.teams_own() RETURNS int LANGUAGE sql AS 'SELECT 9'");
    char sql[256];
    (void)snprintf(sql, sizeof sql, "GRANT EXECUTE ON FUNCTION reclaim.f TO %s_team", s->name);
    must_run(s->pg, sql);
    struct migrate_report report = must_go_up(s->pg, SCHEMA(&next));
    assert_int_equal(report.set_before, 7);
    assert_int_equal(report.set_after, 8);
    expect(s, answer, "2");
    expect(s, stored, "8 next");
    (void)snprintf(sql, sizeof sql, "SELECT pg_catalog.has_function_privilege('%s_team', 'reclaim.f()', 'EXECUTE')",
                   s->name);
    expect(s, sql, "t"); /* what was granted stays */
    expect(s, "SELECT reclaim.teams_own()", "9");
    must_run(s->pg, "DROP FUNCTION reclaim.teams_own()");
    (void)snprintf(sql, sizeof sql, "REVOKE ALL ON FUNCTION reclaim.f FROM %s_team", s->name);
    must_run(s->pg, sql);
    admin("DROP ROLE %s_team", s->name);
}

static void an_older_program_leaves_newer_functions_alone(void **state)
{
    struct scene *s = *state;
    must_go_up(s->pg, SCHEMA(&next));
    struct migrate_report report = must_go_up(s->pg, SCHEMA(&first));
    assert_int_equal(report.set_before, 8);
    assert_int_equal(report.set_after, 8);
    expect(s, answer, "2");
    expect(s, stored, "8 next");
    struct why why;
    assert_int_equal(migrate_down(s->pg, SCHEMA(&first), 1, soon(), &report, &why), ERR_CONFLICT);
    assert_non_null(strstr(why.text, "set 8"));
    expect(s, answer, "2");
}

static void another_set_of_the_same_number_is_refused_before_anything_happens(void **state)
{
    struct scene *s = *state;
    struct migrate_report report;
    struct why why;
    must_go_up(s->pg, &(struct schema){steps, 1, NULL});
    must_run(s->pg, "INSERT INTO reclaim.schema_functions (number, checksum) VALUES (7, 'first')");
    assert_int_equal(migrate_up(s->pg, SCHEMA(&other), soon(), &report, &why), ERR_INPUT);
    assert_non_null(strstr(why.text, "set 7"));
    assert_non_null(strstr(why.text, "tools/sql-set --write"));
    expect(s, "SELECT pg_catalog.max(version) FROM reclaim.schema_migrations", "1");
    expect(s, functions, "0");
}

static void a_set_that_fails_is_wholly_undone_and_names_its_file(void **state)
{
    struct scene *s = *state;
    must_go_up(s->pg, SCHEMA(&first));
    struct migrate_report report;
    struct why why;
    assert_int_equal(migrate_up(s->pg, SCHEMA(&bad), soon(), &report, &why), ERR_DATABASE);
    assert_non_null(strstr(why.text, "sql/functions/x/f.sql"));
    assert_non_null(strstr(why.text, "division by zero"));
    expect(s, answer, "1");
    expect(s, stored, "7 first");
    must_go_up(s->pg, SCHEMA(&next)); /* the lock is free again */
    expect(s, answer, "2");
}

static void an_instance_killed_between_steps_and_set_is_made_good_by_the_next(void **state)
{
    struct scene *s = *state;
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        struct migrate_report report;
        struct pg *pg = pg_new(s->url, PG_PREPARE_AUTO);
        if (!pg || pg_connect(pg, soon(), NULL) ||
            migrate_up(pg, SCHEMA(&slow), clock_ns() + 3600 * NS_PER_S, &report, NULL))
            _exit(1);
        _exit(0);
    }
    while (number_from(shared_url(), "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
                                     " AND query LIKE '%reclaim.f()%'") == 0)
        usleep(1000);
    assert_int_equal(kill(pid, SIGKILL), 0);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));

    struct migrate_report report = must_go_up(s->pg, SCHEMA(&next));
    assert_int_equal(report.before, COUNT_OF(steps));
    assert_int_equal(report.set_before, 0);
    expect(s, answer, "2");
    expect(s, stored, "8 next");
}

struct instance {
    const char *url;
    const struct function_set *set;
    struct migrate_report report;
    enum err err;
};

static void *run_instance(void *argument)
{
    struct instance *i = argument;
    struct pg *pg = pg_new(i->url, PG_PREPARE_AUTO);
    i->err = pg ? pg_connect(pg, soon(), NULL) : ERR_MEMORY;
    if (!i->err)
        i->err = migrate_up(pg, SCHEMA(i->set), soon(), &i->report, NULL);
    pg_free(pg);
    return NULL;
}

static void of_old_and_new_programs_that_start_at_once_the_newest_set_stays(void **state)
{
    const struct scene *s = *state;
    pthread_t threads[AT_ONCE];
    struct instance instances[AT_ONCE];
    for (int i = 0; i < AT_ONCE; i++) {
        instances[i] = (struct instance){.url = s->url, .set = i % 2 ? &first : &next};
        assert_int_equal(pthread_create(&threads[i], NULL, run_instance, &instances[i]), 0);
    }
    int applied[2] = {0};
    for (int i = 0; i < AT_ONCE; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(instances[i].err, OK);
        applied[i % 2] += instances[i].report.set_after != instances[i].report.set_before;
    }
    assert_int_equal(applied[0], 1);
    assert_true(applied[1] <= 1);
    expect(s, answer, "2");
    expect(s, stored, "8 next");
}

static void going_down_removes_the_functions_first_and_forgets_their_number(void **state)
{
    struct scene *s = *state;
    must_go_up(s->pg, SCHEMA(&first));
    must_go_down(s->pg, SCHEMA(&first), 1);
    expect(s, functions, "0");
    expect(s, "SELECT pg_catalog.count(*) FROM reclaim.schema_functions", "0");
    expect(s, "SELECT pg_catalog.count(*) FROM reclaim.a", "0"); /* the first step is still there */
    struct migrate_report report = must_go_up(s->pg, SCHEMA(&first));
    assert_int_equal(report.before, 1);
    assert_int_equal(report.set_after, 7);
    expect(s, answer, "1");
    must_go_down(s->pg, SCHEMA(&first), 2);
    expect(s, "SELECT pg_catalog.to_regnamespace('reclaim') IS NULL", "t");
}

static void functions_that_someone_uses_stop_going_down_with_nothing_changed(void **state)
{
    struct scene *s = *state;
    must_go_up(s->pg, SCHEMA(&first));
    must_run(s->pg, "CREATE SCHEMA team; CREATE VIEW team.v AS SELECT reclaim.f() AS f");
    struct migrate_report report;
    struct why why;
    assert_int_equal(migrate_down(s->pg, SCHEMA(&first), 2, soon(), &report, &why), ERR_DATABASE);
    assert_non_null(strstr(why.text, "functions cannot be removed"));
    expect(s, functions, "3");
    expect(s, stored, "7 first");
    expect(s, "SELECT f FROM team.v", "1");
}

static void nothing(void *context, int version, const char *name, const char *applied_at, bool changed)
{
    (void)context, (void)version, (void)name, (void)applied_at, (void)changed;
}

static void the_status_tells_which_set_is_known_and_which_applied(void **state)
{
    struct scene *s = *state;
    struct set_status set;
    assert_int_equal(migrate_status(s->pg, SCHEMA(&first), soon(), nothing, NULL, &set, NULL), OK);
    assert_int_equal(set.known, 7);
    assert_int_equal(set.applied, 0);
    assert_string_equal(set.applied_at, "");
    must_go_up(s->pg, SCHEMA(&first));
    assert_int_equal(migrate_status(s->pg, SCHEMA(&next), soon(), nothing, NULL, &set, NULL), OK);
    assert_int_equal(set.known, 8);
    assert_int_equal(set.applied, 7);
    assert_int_equal(strlen(set.applied_at), 20);
    assert_false(set.changed);
    assert_int_equal(migrate_status(s->pg, SCHEMA(&other), soon(), nothing, NULL, &set, NULL), OK);
    assert_true(set.changed);
}

int main(void)
{
#define PROMISE(name) cmocka_unit_test_setup_teardown(name, scene_begin, scene_end)
    const struct CMUnitTest promises[] = {
        PROMISE(a_set_is_applied_once_and_its_triggers_work),
        PROMISE(a_higher_number_replaces_the_set),
        PROMISE(an_older_program_leaves_newer_functions_alone),
        PROMISE(another_set_of_the_same_number_is_refused_before_anything_happens),
        PROMISE(a_set_that_fails_is_wholly_undone_and_names_its_file),
        PROMISE(an_instance_killed_between_steps_and_set_is_made_good_by_the_next),
        PROMISE(of_old_and_new_programs_that_start_at_once_the_newest_set_stays),
        PROMISE(going_down_removes_the_functions_first_and_forgets_their_number),
        PROMISE(functions_that_someone_uses_stop_going_down_with_nothing_changed),
        PROMISE(the_status_tells_which_set_is_known_and_which_applied),
    };
    return cmocka_run_group_tests(promises, NULL, NULL);
}
