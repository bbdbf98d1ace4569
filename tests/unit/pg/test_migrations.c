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
#define UP(name) "sql/tables/" name ".up.sql"
#define DOWN(name) "sql/tables/" name ".down.sql"
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
        {{"sql/tables/0001_a.sql"}, 1, ERR_INPUT, "0001_a.sql"},
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

static void a_set_has_a_number_and_each_function_once(void **state)
{
    (void)state;
#define SUM "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n"
    static const struct {
        struct embedded files[3];
        enum err expected;
        const char *words;
    } cases[] = {
        {{{"sql/functions/a/f.sql", STR("1")}, {"sql/functions/set", STR("12 " SUM)}, {"sql/triggers.sql", STR("2")}},
         OK,
         ""},
        {{{"sql/functions/a/f.sql", STR("1")},
          {"sql/functions/b/f.sql", STR("1")},
          {"sql/functions/set", STR("12 " SUM)}},
         ERR_INPUT,
         "sql/functions/a/f.sql and sql/functions/b/f.sql"},
        {{{"sql/functions/a/f.sql", STR("1")}, {"sql/ledger.sql", STR("")}, {"sql/triggers.sql", STR("2")}},
         ERR_INPUT,
         "sql-set"},
        {{{"sql/functions/a/f.sql", STR("1")}, {"sql/functions/set", STR("0 " SUM)}, {"sql/triggers.sql", STR("2")}},
         ERR_INPUT,
         "sql-set"},
        {{{"sql/functions/a/f.sql", STR("1")}, {"sql/functions/set", STR("")}, {"sql/triggers.sql", STR("2")}},
         ERR_INPUT,
         "sql-set"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct embedded *into[FUNCTIONS_MAX];
        struct function_set set;
        struct why why = {""};
        assert_int_equal(functions_read(cases[i].files, 3, into, &set, &why), cases[i].expected);
        assert_non_null(strstr(why.text, cases[i].words));
        if (cases[i].expected)
            continue;
        assert_int_equal(set.number, 12);
        assert_int_equal(set.count, 1);
        assert_true(str_eq(function_name(set.functions[0]), STR("f")));
        assert_ptr_equal(set.triggers, &cases[i].files[2]);
        struct digest sum = digest_sha256(STR("sql/functions/a/f.sql\n1sql/triggers.sql\n2"));
        char hex[DIGEST_HEX_LEN + 1];
        digest_hex(&sum, hex);
        assert_string_equal(set.checksum, hex);
    }
}

static void those_embedded_are_complete(void **state)
{
    (void)state;
    const struct schema *schema, *once_more;
    struct why why = {""};
    assert_int_equal(migrations_embedded(&schema, &why), OK);
    assert_true(schema->count > 0);
    for (size_t i = 0; i < schema->count; i++) {
        const struct migration *m = &schema->steps[i];
        assert_int_equal(m->version, i + 1);
        assert_true(m->name[0] != '\0' && m->up.len > 0 && m->down.len > 0);
        assert_int_equal(m->up.at[m->up.len], '\0');
    }
    assert_true(schema->set->count > 0 && schema->set->triggers != NULL);
    assert_int_equal(migrations_embedded(&once_more, &why), OK);
    assert_ptr_equal(schema, once_more);
}

static void the_recorded_checksum_is_that_of_the_set(void **state)
{
    (void)state;
    const struct schema *schema;
    assert_int_equal(migrations_embedded(&schema, NULL), OK);
    const struct embedded *record = embedded_find(FUNCTIONS_FOLDER "set");
    assert_non_null(record);
    assert_non_null(strstr(record->bytes.at, schema->set->checksum));
}

int main(void)
{
    const struct CMUnitTest promises[] = {
        cmocka_unit_test(files_must_be_complete_and_well_named),
        cmocka_unit_test(a_set_has_a_number_and_each_function_once),
        cmocka_unit_test(those_embedded_are_complete),
        cmocka_unit_test(the_recorded_checksum_is_that_of_the_set),
    };
    return cmocka_run_group_tests(promises, NULL, NULL);
}
