/* The pgTAP tests of sql/tests, each in a separate database with the newest schema and the standalone tables. */
#include <fcntl.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "pg/migrate.h"
#include "server.h"

static int64_t soon(void)
{
    return clock_ns() + 60 * NS_PER_S;
}

static void admin(const char *url, const char *format, const char *name)
{
    char sql[256];
    (void)snprintf(sql, sizeof sql, format, name);
    struct pg *pg = must_connect(url, PG_PREPARE_OFF);
    must_run(pg, sql);
    pg_free(pg);
}

static void make_schema(const char *url)
{
    const struct schema *schema;
    struct migrate_report report;
    struct why why = {""};
    struct pg *pg = must_connect(url, PG_PREPARE_AUTO);
    if (migrations_embedded(&schema, &why) || migrate_up(pg, schema, soon(), &report, &why) ||
        migrate_standalone(pg, soon(), &why))
        fail_msg("%s", why.text);
    pg_free(pg);
    admin(url, "CREATE SCHEMA %s; CREATE EXTENSION pgtap SCHEMA tap", "tap");
}

/* Runs the file and counts the failures that TAP reports; 0 when every planned test ran and passed. */
static int failures(const char *url, const char *path)
{
    int ends[2], planned = -1, passed = 0, failed = 0, status = -1;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (dup2(ends[1], 1) < 0 || dup2(ends[1], 2) < 0 || setenv("PGOPTIONS", "-csearch_path=public,tap", 1))
            _exit(126);
        execlp("psql", "psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-d", url, "-f", path, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    FILE *out = fdopen(ends[0], "r");
    char line[4096];
    while (fgets(line, sizeof line, out)) {
        bool good = strncmp(line, "ok ", 3) == 0;
        passed += good;
        failed += strncmp(line, "not ok ", 7) == 0;
        if (strncmp(line, "1..", 3) == 0)
            planned = (int)strtol(line + 3, NULL, 10);
        else if (!good && line[0] != '\n')
            print_error("%s: %s", path, line);
    }
    fclose(out);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (passed != planned)
        print_error("%s: %d of %d passed\n", path, passed, planned);
    return failed + (passed != planned) + (status != 0);
}

static void every_file_of_sql_tests_passes(void **state)
{
    (void)state;
    glob_t files;
    int failed = 0;
    assert_int_equal(number_from(shared_url(), "SELECT count(*) FROM pg_available_extensions WHERE name = 'pgtap'"), 1);
    assert_int_equal(glob(SQL_TESTS "/*.sql", 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        char name[64], url[256];
        (void)snprintf(name, sizeof name, "sql_%d_%zu", (int)getpid(), i);
        (void)snprintf(url, sizeof url, "%s&dbname=%s", shared_url(), name);
        admin(shared_url(), "CREATE DATABASE %s", name);
        make_schema(url);
        failed += failures(url, files.gl_pathv[i]);
        admin(shared_url(), "DROP DATABASE %s WITH (FORCE)", name);
    }
    globfree(&files);
    assert_int_equal(failed, 0);
}

int main(void)
{
    const struct CMUnitTest promises[] = {cmocka_unit_test(every_file_of_sql_tests_passes)};
    return cmocka_run_group_tests(promises, NULL, NULL);
}
