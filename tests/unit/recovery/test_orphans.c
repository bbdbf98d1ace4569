#include "recovery/orphans.h"

#include <string.h>

#include "../base/unit.h"

static void every_ownership_column_is_asked(void **state UNUSED)
{
    static const struct ownership_column columns[] = {{"public", "companies", "owner_admin_uuid"},
                                                      {"crm", "Staff", "user_id"}};
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

static void the_most_columns_with_the_longest_names_fit(void **state UNUSED)
{
    char name[64];
    memset(name, 'n', 63);
    name[63] = '\0';
    struct ownership_column columns[OWNERSHIP_MAX];
    for (size_t i = 0; i < OWNERSHIP_MAX; i++)
        columns[i] = (struct ownership_column){name, name, name};
    struct orphan_statements s;
    assert_int_equal(orphan_statements_write(columns, OWNERSHIP_MAX, &s), OK);
    orphan_statements_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_ownership_column_is_asked),
        cmocka_unit_test(the_most_columns_with_the_longest_names_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
