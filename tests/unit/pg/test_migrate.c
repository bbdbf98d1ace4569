#include <fcntl.h>
#include <glob.h>
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

#include "base/buf.h"
#include "base/clock.h"
#include "migrate_scene.h"
#include "server.h"

#define AT_ONCE 10

/* What pg_dump tells of the database, and what is set for its role; not the audit tables' partitions, which come and go
 * with the months. */
static void snapshot(const struct scene *s, struct buf *into)
{
    glob_t found;
    assert_int_equal(glob("/usr/lib/postgresql/*/bin/pg_dump", 0, NULL, &found), 0);
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (dup2(ends[1], 1) < 0)
            _exit(126);
        execl(found.gl_pathv[found.gl_pathc - 1], "pg_dump", "--schema-only", "--exclude-table=reclaim.*_2???_??", "-d",
              s->url, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    FILE *out = fdopen(ends[0], "r");
    char line[4096];
    while (fgets(line, sizeof line, out))
        if (line[0] != '\\') /* "\restrict" has a random word */
            buf_addz(into, line);
    fclose(out);
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    globfree(&found);

    struct pg *pg = must_connect(s->url, PG_PREPARE_OFF);
    static const struct statement settings = {
        "settings",
        "SELECT pg_catalog.string_agg(setconfig::text, ';') FROM pg_catalog.pg_db_role_setting"
        " WHERE setrole = (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = current_user)",
        0, ""};
    struct pg_call call = {.ask = &settings};
    assert_int_equal(pg_ask(pg, &call, soon()), OK);
    if (!pg_is_null(&call, 0, 0))
        buf_add(into, pg_get(&call, 0, 0));
    pg_free(pg);
    assert_int_equal(into->failed, OK);
}

static void expect_same(const struct buf *a, const struct buf *b)
{
    if (!str_eq(buf_str(a), buf_str(b)))
        fail_msg("the schemas differ:\n%.*s\n---\n%.*s", STR_ARGS(buf_str(a)), STR_ARGS(buf_str(b)));
}

/* Three that build on one another, to see more than the program's own can show. */
static const struct migration three[] = {
    {1, "one", STR("CREATE TABLE reclaim.a (n int PRIMARY KEY); INSERT INTO reclaim.a VALUES (1);"),
     STR("DROP TABLE reclaim.a;")},
    {2, "two",
     STR("ALTER TABLE reclaim.a ADD COLUMN t text;"
         "CREATE FUNCTION reclaim.f() RETURNS int LANGUAGE sql AS 'SELECT 1';"
         "REVOKE ALL ON FUNCTION reclaim.f() FROM PUBLIC;"),
     STR("DROP FUNCTION reclaim.f(); ALTER TABLE reclaim.a DROP COLUMN t;")},
    {3, "three", STR("CREATE INDEX a_t ON reclaim.a (t); CREATE VIEW reclaim.v AS SELECT n, t FROM reclaim.a;"),
     STR("DROP VIEW reclaim.v; DROP INDEX reclaim.a_t;")},
};

/* No threads are involved: the thread sanitizer sees a few versions only. */
#ifdef __SANITIZE_THREAD__
#define VERSIONS_AT_ONCE 7
#else
#define VERSIONS_AT_ONCE 1
#endif

/* The functions work on all tables: below the newest version there are none. */
static void go_through_every_version(struct scene *s, const struct schema *schema)
{
    size_t count = schema->count;
    AUTO(buf) struct buf empty = buf_new(1 << 20), newest = buf_new(1 << 20);
    snapshot(s, &empty);
    must_go_up(s->pg, schema);
    snapshot(s, &newest);
    assert_false(str_eq(buf_str(&empty), buf_str(&newest)));
    for (size_t from = 0; from <= count; from += VERSIONS_AT_ONCE) {
        AUTO(buf) struct buf here = buf_new(1 << 20), back = buf_new(1 << 20), up = buf_new(1 << 20);
        must_go_down(s->pg, schema, (int)count);
        snapshot(s, &here);
        expect_same(&here, &empty);
        buf_clear(&here);
        if (from > 0) {
            struct migrate_report report = must_up(s->pg, schema->steps, from);
            assert_int_equal(report.before, 0);
            assert_int_equal(report.after, (int)from);
        }
        snapshot(s, &here);
        struct migrate_report report = must_go_up(s->pg, schema);
        assert_int_equal(report.before, (int)from);
        assert_int_equal(report.after, (int)count);
        snapshot(s, &up);
        expect_same(&up, &newest);
        if (from == count)
            break;
        report = must_go_down(s->pg, schema, (int)(count - from));
        assert_int_equal(report.before, (int)count);
        assert_int_equal(report.after, (int)from);
        snapshot(s, &back);
        expect_same(&back, &here);
        must_go_up(s->pg, schema);
    }
}

static void every_version_leads_to_the_newest_and_back(void **state)
{
    go_through_every_version(*state, STEPS(three, COUNT_OF(three)));
}

static void every_embedded_version_leads_to_the_newest_and_back(void **state)
{
    const struct schema *schema;
    assert_int_equal(migrations_embedded(&schema, NULL), OK);
    assert_true(schema->count > 0 && schema->set->count > 0);
    go_through_every_version(*state, schema);
}

static void the_schema_is_closed_to_public(void **state)
{
    struct scene *s = *state;
    const struct schema *schema;
    assert_int_equal(migrations_embedded(&schema, NULL), OK);
    must_go_up(s->pg, schema);
    expect(s, "SELECT pg_catalog.has_schema_privilege('public', 'reclaim', 'USAGE, CREATE')", "f");
    static const char open_functions[] =
        "SELECT pg_catalog.count(*) FROM pg_catalog.pg_proc WHERE pronamespace = 'reclaim'::regnamespace"
        " AND pg_catalog.has_function_privilege('public', oid, 'EXECUTE')";
    expect(s, open_functions, "0");
    must_run(s->pg, "CREATE FUNCTION reclaim.open() RETURNS int LANGUAGE sql AS 'SELECT 1'");
    expect(s, open_functions, "1"); /* the question finds one when there is one */
}

static void a_file_that_changed_is_named_and_nothing_happens(void **state)
{
    struct scene *s = *state;
    must_up(s->pg, three, 2);
    struct migration changed[COUNT_OF(three)];
    memcpy(changed, three, sizeof three);
    changed[1].up = STR("SELECT 1;");
    AUTO(buf) struct buf before = buf_new(1 << 20), after = buf_new(1 << 20);
    snapshot(s, &before);
    struct migrate_report report;
    struct why why;
    assert_int_equal(migrate_up(s->pg, STEPS(changed, COUNT_OF(changed)), soon(), &report, &why), ERR_INPUT);
    assert_non_null(strstr(why.text, "sql/tables/0002_two.up.sql"));
    assert_int_equal(migrate_down(s->pg, STEPS(changed, COUNT_OF(changed)), 1, soon(), &report, &why), ERR_INPUT);
    assert_non_null(strstr(why.text, "sql/tables/0002_two.up.sql"));
    snapshot(s, &after);
    expect_same(&before, &after);
    must_up(s->pg, three, COUNT_OF(three)); /* the lock is free again */
}

static void a_gap_in_what_was_applied_stops_everything(void **state)
{
    struct scene *s = *state;
    must_up(s->pg, three, COUNT_OF(three));
    must_run(s->pg, "DELETE FROM reclaim.schema_migrations WHERE version = 2");
    struct migrate_report report;
    struct why why;
    assert_int_equal(migrate_up(s->pg, STEPS(three, COUNT_OF(three)), soon(), &report, &why), ERR_INPUT);
    assert_non_null(strstr(why.text, "version 2"));
    assert_int_equal(migrate_down(s->pg, STEPS(three, COUNT_OF(three)), 1, soon(), &report, &why), ERR_INPUT);
}

static void a_database_newer_than_the_program_is_left_alone(void **state)
{
    struct scene *s = *state;
    must_up(s->pg, three, COUNT_OF(three));
    AUTO(buf) struct buf before = buf_new(1 << 20), after = buf_new(1 << 20);
    snapshot(s, &before);
    struct migrate_report report;
    struct why why;
    assert_int_equal(migrate_up(s->pg, STEPS(three, 2), soon(), &report, &why), ERR_CONFLICT);
    assert_non_null(strstr(why.text, "version 3"));
    assert_int_equal(migrate_down(s->pg, STEPS(three, 2), 1, soon(), &report, &why), ERR_CONFLICT);
    snapshot(s, &after);
    expect_same(&before, &after);
}

static void a_migration_that_fails_leaves_no_trace_and_says_why(void **state)
{
    struct scene *s = *state;
    struct migration bad[] = {three[0],
                              {2, "bad", STR("CREATE TABLE reclaim.b (n int);\nSELECT 1 / 0;"), STR("DROP TABLE x;")}};
    must_up(s->pg, three, 1);
    AUTO(buf) struct buf before = buf_new(1 << 20), after = buf_new(1 << 20);
    snapshot(s, &before);
    struct migrate_report report;
    struct why why;
    assert_int_equal(migrate_up(s->pg, STEPS(bad, COUNT_OF(bad)), soon(), &report, &why), ERR_DATABASE);
    assert_non_null(strstr(why.text, "sql/tables/0002_bad.up.sql"));
    assert_non_null(strstr(why.text, "division by zero"));
    snapshot(s, &after);
    expect_same(&before, &after);
    must_up(s->pg, three, COUNT_OF(three));
}

static void a_first_migration_that_fails_can_be_left_behind(void **state)
{
    struct scene *s = *state;
    struct migration bad = {1, "bad", STR("SELECT 1 / 0;"), STR("SELECT 1;")};
    AUTO(buf) struct buf before = buf_new(1 << 20), after = buf_new(1 << 20);
    snapshot(s, &before);
    struct migrate_report report;
    assert_int_equal(migrate_up(s->pg, STEPS(&bad, 1), soon(), &report, NULL), ERR_DATABASE);
    must_down(s->pg, three, COUNT_OF(three), 1);
    snapshot(s, &after);
    expect_same(&before, &after);
}

static void what_is_not_ours_is_never_dropped_with_the_schema(void **state)
{
    struct scene *s = *state;
    must_up(s->pg, three, COUNT_OF(three));
    must_run(s->pg, "CREATE TABLE reclaim.someone_elses (n int)");
    struct migrate_report report;
    struct why why;
    assert_int_equal(migrate_down(s->pg, STEPS(three, COUNT_OF(three)), 3, soon(), &report, &why), ERR_DATABASE);
    expect(s, "SELECT pg_catalog.to_regclass('reclaim.someone_elses') IS NOT NULL", "t");
    expect(s, "SELECT pg_catalog.max(version) FROM reclaim.schema_migrations", "1");
}

static void an_instance_killed_in_the_middle_is_made_good_by_the_next(void **state)
{
    struct scene *s = *state;
    static const struct migration slow[] = {
        {1, "one", STR("CREATE TABLE reclaim.a (n int);"), STR("DROP TABLE reclaim.a;")},
        {2, "two", STR("CREATE TABLE reclaim.b (n int); SELECT pg_sleep(3600);"), STR("DROP TABLE reclaim.b;")},
    };
    static const struct migration quick[] = {
        {1, "one", STR("CREATE TABLE reclaim.a (n int);"), STR("DROP TABLE reclaim.a;")},
        {2, "two", STR("CREATE TABLE reclaim.b (n int);"), STR("DROP TABLE reclaim.b;")},
    };
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        struct migrate_report report;
        struct pg *pg = pg_new(s->url, PG_PREPARE_AUTO);
        if (!pg || pg_connect(pg, soon(), NULL) ||
            migrate_up(pg, STEPS(slow, 2), clock_ns() + 3600 * NS_PER_S, &report, NULL))
            _exit(1);
        _exit(0);
    }
    while (number_from(shared_url(), "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
                                     " AND query LIKE '%CREATE TABLE reclaim.b%'") == 0)
        usleep(1000);
    assert_int_equal(kill(pid, SIGKILL), 0);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));

    struct migrate_report report = must_up(s->pg, quick, 2);
    assert_int_equal(report.before, 1);
    assert_int_equal(report.after, 2);
    expect(s, "SELECT pg_catalog.count(*) FROM reclaim.schema_migrations", "2");
}

static void whoever_waits_too_long_for_another_instance_is_told(void **state)
{
    struct scene *s = *state;
    struct pg *other = must_connect(s->url, PG_PREPARE_OFF);
    must_run(other, "SELECT pg_advisory_lock(1919247212, 1)");
    struct migrate_report report;
    struct why why;
    enum err e = migrate_up(s->pg, STEPS(three, COUNT_OF(three)), clock_ns() + NS_PER_S / 2, &report, &why);
    assert_int_equal(e, ERR_TIMEOUT);
    assert_non_null(strstr(why.text, "another instance"));
    expect(s, "SELECT pg_catalog.to_regnamespace('reclaim') IS NULL", "t");
    pg_free(other);
    must_up(s->pg, three, COUNT_OF(three));
}

static void a_lock_is_never_left_behind(void **state)
{
    struct scene *s = *state;
    struct migrate_report report;
    struct migration bad = {1, "bad", STR("SELECT 1 / 0;"), STR("SELECT 1;")};
    must_up(s->pg, three, COUNT_OF(three));
    must_down(s->pg, three, COUNT_OF(three), 3);
    assert_int_equal(migrate_up(s->pg, STEPS(&bad, 1), soon(), &report, NULL), ERR_DATABASE);
    assert_int_equal(migrate_standalone(s->pg, soon(), NULL), OK);
    expect(s,
           "SELECT pg_catalog.count(*) FROM pg_catalog.pg_locks WHERE locktype = 'advisory'"
           " AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())",
           "0");
}

struct instance {
    const char *url;
    struct migrate_report report;
    enum err err;
};

static void *run_instance(void *argument)
{
    struct instance *i = argument;
    struct pg *pg = pg_new(i->url, PG_PREPARE_AUTO);
    i->err = pg ? pg_connect(pg, soon(), NULL) : ERR_MEMORY;
    if (!i->err)
        i->err = migrate_standalone(pg, soon(), NULL);
    if (!i->err)
        i->err = migrate_up(pg, STEPS(three, COUNT_OF(three)), soon(), &i->report, NULL);
    pg_free(pg);
    return NULL;
}

static void ten_at_once_do_it_once(void **state)
{
    const struct scene *s = *state;
    pthread_t threads[AT_ONCE];
    struct instance instances[AT_ONCE];
    for (int i = 0; i < AT_ONCE; i++) {
        instances[i] = (struct instance){.url = s->url};
        assert_int_equal(pthread_create(&threads[i], NULL, run_instance, &instances[i]), 0);
    }
    int did_it = 0;
    for (int i = 0; i < AT_ONCE; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(instances[i].err, OK);
        assert_int_equal(instances[i].report.after, COUNT_OF(three));
        assert_true(instances[i].report.before == 0 || instances[i].report.before == COUNT_OF(three));
        did_it += instances[i].report.before == 0;
    }
    assert_int_equal(did_it, 1);
    expect(s, "SELECT pg_catalog.count(*) FROM reclaim.schema_migrations", "3");
}

static void expect_path(struct scene *s, const char *while_up, const char *after)
{
    must_up(s->pg, three, COUNT_OF(three));
    expect(s, "SHOW search_path", while_up);
    scene_again(s);
    must_up(s->pg, three, COUNT_OF(three)); /* the second time nothing is added */
    expect(s, "SHOW search_path", while_up);
    must_down(s->pg, three, COUNT_OF(three), 3);
    expect(s, "SHOW search_path", after);
    scene_again(s);
}

static void the_search_path_gains_reclaim_and_loses_it_again(void **state)
{
    struct scene *s = *state;
    static const char own[] = "SELECT pg_catalog.count(*) FROM pg_catalog.pg_db_role_setting WHERE setdatabase <> 0 AND"
                              " setrole = (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = current_user)";
    admin("ALTER DATABASE %s OWNER TO postgres", s->name);
    admin("GRANT CREATE ON DATABASE %s TO %s", s->name, s->name);
    expect_path(s, "reclaim, \"$user\", public", "\"$user\", public");
    expect(s, own, "0");

    admin("ALTER DATABASE %s SET search_path = extensions, public", s->name);
    scene_again(s);
    expect_path(s, "reclaim, extensions, public", "extensions, public");
    expect(s, own, "0");

    admin("ALTER ROLE %s SET search_path = public, reclaim", s->name);
    scene_again(s);
    expect_path(s, "reclaim, public", "public, reclaim");

    admin("ALTER ROLE %s IN DATABASE %s SET search_path = public, \"a, \"\"b\"\"\", \"Upper\", ''", s->name, s->name);
    scene_again(s);
    expect_path(s, "reclaim, public, \"a, \"\"b\"\"\", \"Upper\", \"\"", "public, \"a, \"\"b\"\"\", \"Upper\", \"\"");

    admin("ALTER ROLE %s IN DATABASE %s SET search_path = reclaim", s->name, s->name);
    scene_again(s);
    must_up(s->pg, three, COUNT_OF(three));
    expect(s, "SHOW search_path", "reclaim");
}

static void the_search_path_of_a_products_role_is_left_alone(void **state)
{
    struct scene *s = *state;
    expect_path(s, "\"$user\", public", "\"$user\", public"); /* it owns the database */

    admin("ALTER DATABASE %s OWNER TO postgres", s->name);
    admin("GRANT CREATE ON DATABASE %s TO %s", s->name, s->name);
    must_run(s->pg, "CREATE SCHEMA product");
    expect_path(s, "\"$user\", public", "\"$user\", public");

    must_run(s->pg, "DROP SCHEMA product");
    admin("CREATE ROLE %s_person IN ROLE %s", s->name, s->name);
    expect_path(s, "\"$user\", public", "\"$user\", public");

    admin("ALTER ROLE %s IN DATABASE %s SET search_path = public", s->name, s->name);
    scene_again(s);
    expect_path(s, "public", "public");
    admin("DROP ROLE %s_person", s->name);
}

static void a_hostile_search_path_changes_nothing(void **state)
{
    struct scene *s = *state;
    must_run(s->pg,
             "CREATE SCHEMA trap;"
             "CREATE FUNCTION trap.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz';"
             "SET search_path = trap, pg_catalog");
    struct migration m = {1, "one", STR("CREATE TABLE reclaim.a (at timestamptz DEFAULT clock_timestamp());"),
                          STR("DROP TABLE reclaim.a;")};
    must_up(s->pg, &m, 1);
    must_run(s->pg, "INSERT INTO reclaim.a DEFAULT VALUES");
    expect(s, "SELECT pg_catalog.count(at) FROM reclaim.a", "1");
}

static void a_transaction_pooler_is_refused(void **state)
{
    struct scene *s = *state;
    struct pooler *pooler = pooler_start(shared_url());
    char url[256];
    (void)snprintf(url, sizeof url, "%s&dbname=%s", pooler_url(pooler), s->name);
    struct pg *pg = must_connect(url, PG_PREPARE_AUTO);
    struct migrate_report report;
    struct why why;
    if (pg_is_pooled(pg)) {
        assert_int_equal(migrate_up(pg, STEPS(three, COUNT_OF(three)), soon(), &report, &why), ERR_INPUT);
        assert_non_null(strstr(why.text, "RECLAIM_DATABASE_DIRECT_URL"));
    } else {
        fail_msg("the pooler was not recognised");
    }
    pg_free(pg);
    pooler_free(pooler);
}

struct told {
    char text[512];
};

static void tell(void *context, int version, const char *name, const char *applied_at, bool changed)
{
    struct told *told = context;
    size_t used = strlen(told->text);
    (void)snprintf(told->text + used, sizeof told->text - used, "%d %s %s%s;", version, name,
                   applied_at ? (strlen(applied_at) == 20 ? "applied" : applied_at) : "open",
                   changed ? " changed" : "");
}

static void the_status_tells_known_applied_and_changed(void **state)
{
    struct scene *s = *state;
    struct told told = {""};
    struct set_status set;
    assert_int_equal(migrate_status(s->pg, STEPS(three, COUNT_OF(three)), soon(), tell, &told, &set, NULL), OK);
    assert_string_equal(told.text, "1 one open;2 two open;3 three open;");
    expect(s, "SELECT pg_catalog.to_regnamespace('reclaim') IS NULL", "t"); /* looking makes nothing */

    must_up(s->pg, three, 2);
    struct migration changed[COUNT_OF(three)];
    memcpy(changed, three, sizeof three);
    changed[0].up = STR("SELECT 1;");
    told = (struct told){""};
    assert_int_equal(migrate_status(s->pg, STEPS(changed, COUNT_OF(changed)), soon(), tell, &told, &set, NULL), OK);
    assert_string_equal(told.text, "1 one applied changed;2 two applied;3 three open;");

    must_run(s->pg, "INSERT INTO reclaim.schema_migrations (version, name, checksum) VALUES (9, 'later', 'x')");
    told = (struct told){""};
    assert_int_equal(migrate_status(s->pg, STEPS(three, COUNT_OF(three)), soon(), tell, &told, &set, NULL), OK);
    assert_string_equal(told.text, "1 one applied;2 two applied;3 three open;9 later applied;");
}

static void steps_down_must_be_some(void **state)
{
    const struct scene *s = *state;
    struct migrate_report report;
    assert_int_equal(migrate_down(s->pg, STEPS(three, COUNT_OF(three)), 0, soon(), &report, NULL), ERR_INPUT);
    assert_int_equal(migrate_down(s->pg, STEPS(three, COUNT_OF(three)), -1, soon(), &report, NULL), ERR_INPUT);
    report = must_down(s->pg, three, COUNT_OF(three), 1); /* from nothing */
    assert_int_equal(report.before, 0);
    assert_int_equal(report.after, 0);
}

int main(void)
{
#define PROMISE(name) cmocka_unit_test_setup_teardown(name, scene_begin, scene_end)
    const struct CMUnitTest promises[] = {
        PROMISE(every_version_leads_to_the_newest_and_back),
        PROMISE(every_embedded_version_leads_to_the_newest_and_back),
        PROMISE(the_schema_is_closed_to_public),
        PROMISE(a_file_that_changed_is_named_and_nothing_happens),
        PROMISE(a_gap_in_what_was_applied_stops_everything),
        PROMISE(a_database_newer_than_the_program_is_left_alone),
        PROMISE(a_migration_that_fails_leaves_no_trace_and_says_why),
        PROMISE(a_first_migration_that_fails_can_be_left_behind),
        PROMISE(what_is_not_ours_is_never_dropped_with_the_schema),
        PROMISE(an_instance_killed_in_the_middle_is_made_good_by_the_next),
        PROMISE(whoever_waits_too_long_for_another_instance_is_told),
        PROMISE(a_lock_is_never_left_behind),
        PROMISE(ten_at_once_do_it_once),
        PROMISE(the_search_path_gains_reclaim_and_loses_it_again),
        PROMISE(the_search_path_of_a_products_role_is_left_alone),
        PROMISE(a_hostile_search_path_changes_nothing),
        PROMISE(a_transaction_pooler_is_refused),
        PROMISE(the_status_tells_known_applied_and_changed),
        PROMISE(steps_down_must_be_some),
    };
    return cmocka_run_group_tests(promises, NULL, NULL);
}
