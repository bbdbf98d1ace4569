#include "recovery/orphans.h"

#include <string.h>

#include "../base/unit.h"

static void every_ownership_column_is_asked(void **state UNUSED)
{
    static const struct ownership_column columns[] = {{"public", "companies", "owner_admin_uuid", NULL},
                                                      {"crm", "Staff", "user_id", NULL}};
    struct orphan_statements s;
    assert_int_equal(orphan_statements_write(columns, COUNT_OF(columns), &s), OK);
    assert_non_null(strstr(s.has_company.sql, "\"public\".\"companies\" o0 WHERE o0.\"owner_admin_uuid\" = u.id"));
    assert_non_null(strstr(s.has_company.sql, " OR EXISTS (SELECT 1 FROM \"crm\".\"Staff\" o1"));
    assert_non_null(strstr(s.blocked.sql, "ARRAY['public.companies.owner_admin_uuid','crm.Staff.user_id']"));
    assert_non_null(strstr(s.list.sql, "NOT (EXISTS (SELECT 1 FROM \"public\".\"companies\""));
    const struct statement *const all[] = {&s.candidates, &s.has_company, &s.have_company, &s.list};
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        assert_non_null(strstr(all[i]->sql, "reclaim.customer_customers c WHERE c.owner_user_id = u.id"));
        assert_non_null(strstr(all[i]->sql, "WHERE m.user_id = u.id"));
    }
    orphan_statements_free(&s);
}

/* An orphan may have a row there: its foreign key can stop the deletion, and its rows are locked before they are read. */
static void rows_count_only_under_their_condition(void **state UNUSED)
{
    static const struct ownership_column columns[] = {{"public", "profiles", "id", "a > '5' or b"},
                                                      {"public", "companies", "owner", NULL},
                                                      {"public", "profiles", "id", "c"}};
    static const bool no_keys[] = {true, true, true}, keys[] = {false, true, false};
    struct orphan_statements s;
    assert_int_equal(orphan_statements_write(columns, COUNT_OF(columns), &s), OK);
    assert_non_null(strstr(s.has_company.sql, "o0 WHERE o0.\"id\" = u.id AND (a > '5' or b)) OR "));
    assert_non_null(strstr(s.has_company.sql, "sees_all_rows('\"public\".\"profiles\"', 'SELECT')"));
    assert_non_null(strstr(s.candidates.sql, "sees_all_rows('\"public\".\"profiles\"', 'UPDATE')"));
    assert_non_null(strstr(s.candidates.sql, "sees_all_rows('\"public\".\"companies\"', 'SELECT')"));
    assert_non_null(strstr(s.blocked.sql, "ARRAY['public.companies.owner']"));
    assert_int_equal(orphan_statements_lock(&s, columns, keys, COUNT_OF(columns)), OK);
    assert_string_equal(s.lock_tables.sql, "LOCK TABLE \"public\".\"companies\" IN SHARE ROW EXCLUSIVE MODE");
    assert_non_null(strstr(s.lock_rows.sql, "WHERE o.\"id\" = $1::uuid FOR NO KEY UPDATE OF o), l2 AS ("));
    assert_int_equal(orphan_statements_lock(&s, columns, no_keys, COUNT_OF(columns)), OK);
    assert_null(s.lock_rows.sql);
    orphan_statements_free(&s);
}

static void the_words_of_a_condition_may_name_columns(void **state UNUSED)
{
    const struct ownership_column column = {"public", "profiles", "id", "Done and \"On\" = 'off' and x1 > 2e5"};
    AUTO(buf) struct buf words = buf_new(1024);
    ownership_words(&column, &words);
    assert_string_equal(buf_str(&words).at, "{\"done\",\"and\",\"On\",\"and\",\"x1\"");
    const struct ownership_column twice[] = {
        column, {"public", "profiles", "id", NULL}, {"crm", "staff", "user_id", NULL}};
    AUTO(buf) struct buf names = buf_new(1024);
    ownership_names(twice, COUNT_OF(twice), &names);
    assert_string_equal(buf_str(&names).at, "{\"public.profiles.id\",\"crm.staff.user_id\"");
}

static void the_most_columns_with_the_longest_names_fit(void **state UNUSED)
{
    char name[64];
    memset(name, 'n', 63);
    name[63] = '\0';
    struct ownership_column columns[OWNERSHIP_MAX];
    for (size_t i = 0; i < OWNERSHIP_MAX; i++)
        columns[i] = (struct ownership_column){name, name, name, NULL};
    struct orphan_statements s;
    assert_int_equal(orphan_statements_write(columns, OWNERSHIP_MAX, &s), OK);
    orphan_statements_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_ownership_column_is_asked),
        cmocka_unit_test(rows_count_only_under_their_condition),
        cmocka_unit_test(the_words_of_a_condition_may_name_columns),
        cmocka_unit_test(the_most_columns_with_the_longest_names_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
