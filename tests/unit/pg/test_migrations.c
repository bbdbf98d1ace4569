#include "pg/migrations.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static enum err read_files(const char *const *names, size_t count, size_t *ret_count, struct why *why)
{
    static struct migration into[MIGRATIONS_MAX];
    struct embedded files[8] = {0};
    for (size_t i = 0; i < count; i++)
        files[i] = (struct embedded){names[i], STR("SELECT 1;")};
    return migrations_read(files, count, into, ret_count, why);
}

static void files_must_be_complete_and_well_named(void **state)
{
    (void)state;
#define UP(name) "sql/migrations/" name ".up.sql"
#define DOWN(name) "sql/migrations/" name ".down.sql"
    static const struct {
        const char *names[4];
        size_t count;
        enum err expected;
        const char *words;
    } cases[] = {
        {{DOWN("0001_a"), UP("0001_a"), DOWN("0002_b"), UP("0002_b")}, 4, OK, ""},
        {{"openapi/reclaim.json", "sql/demo.sql", DOWN("0001_a"), UP("0001_a")}, 4, OK, ""},
        {{DOWN("0001_a"), UP("0001_a"), DOWN("0003_b"), UP("0003_b")}, 4, ERR_INPUT, "0002"},
        {{UP("0001_a")}, 1, ERR_INPUT, "down"},
        {{DOWN("0001_a")}, 1, ERR_INPUT, "up"},
        {{DOWN("0001_a"), UP("0001_a"), UP("0001_b")}, 3, ERR_INPUT, "another"},
        {{UP("1_a")}, 1, ERR_INPUT, "1_a.up.sql"},
        {{UP("0000_a")}, 1, ERR_INPUT, "0000_a.up.sql"},
        {{UP("0001_")}, 1, ERR_INPUT, "0001_.up.sql"},
        {{"sql/migrations/0001_a.sql"}, 1, ERR_INPUT, "0001_a.sql"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        size_t count = 0;
        struct why why = {""};
        assert_int_equal(read_files(cases[i].names, cases[i].count, &count, &why), cases[i].expected);
        assert_non_null(strstr(why.text, cases[i].words));
        if (!cases[i].expected)
            assert_true(count > 0);
    }
}

static void those_embedded_are_complete(void **state)
{
    (void)state;
    const struct migration *all, *once_more;
    size_t count, count_once_more;
    struct why why = {""};
    assert_int_equal(migrations_embedded(&all, &count, &why), OK);
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(all[i].version, i + 1);
        assert_true(all[i].name[0] != '\0' && all[i].up.len > 0 && all[i].down.len > 0);
        assert_int_equal(all[i].up.at[all[i].up.len], '\0');
    }
    assert_int_equal(migrations_embedded(&once_more, &count_once_more, &why), OK);
    assert_ptr_equal(all, once_more);
    assert_int_equal(count, count_once_more);
}

int main(void)
{
    const struct CMUnitTest promises[] = {
        cmocka_unit_test(files_must_be_complete_and_well_named),
        cmocka_unit_test(those_embedded_are_complete),
    };
    return cmocka_run_group_tests(promises, NULL, NULL);
}
