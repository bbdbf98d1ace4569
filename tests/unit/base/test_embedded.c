#include "base/embedded.h"

#include "unit.h"

const struct embedded embedded_files[] = {
    {"openapi/reclaim.json", {"{}", 2}},         {"sql/tables/0001_a.down.sql", {"drop", 4}},
    {"sql/tables/0001_a.up.sql", {"create", 6}}, {"sql/tables/0002_b.up.sql", {"", 0}},
    {"web/index.html", {"<!doctype html>", 15}},
};
const size_t embedded_count = COUNT_OF(embedded_files);

static void every_file_is_found_by_its_name(void **state UNUSED)
{
    for (size_t i = 0; i < embedded_count; i++)
        assert_ptr_equal(embedded_find(embedded_files[i].name), &embedded_files[i]);
    assert_str(embedded_find("sql/tables/0001_a.up.sql")->bytes, "create");
}

static void what_is_not_there_is_not_found(void **state UNUSED)
{
    const char *names[] = {
        "",    "a",   "openapi/reclaim.jso", "openapi/reclaim.json2", "sql/tables/0001_a", "web", "web/index.htmlx",
        "zzz", "\xFF"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        assert_null(embedded_find(names[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_file_is_found_by_its_name),
        cmocka_unit_test(what_is_not_there_is_not_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
