/* What `/account` makes of the endpoints' answers. */
#include <string.h>

#include "../base/unit.h"
#include "pages/account.h"

static struct sentences *sentences;
static struct pages pages = {.config = {.grace_ms = 3600000, .backup_retention_ms = 0}};
static struct page page;

static int begin(void **state UNUSED)
{
    struct why why;
    assert_int_equal(sentences_load(NULL, &sentences, &why), OK);
    page = (struct page){.pages = &pages, .values = json_object(), .reader = {sentences, LANGUAGE_EN, NULL}};
    return 0;
}

static int end(void **state UNUSED)
{
    json_decref(page.values);
    sentences_free(sentences);
    return 0;
}

static const char *text(const char *name)
{
    return json_string_value(json_object_get(page.values, name));
}

static void a_time_is_read_to_the_microsecond(void **state UNUSED)
{
    int64_t us;
    assert_int_equal(account_parse_time("1970-01-02T00:00:01.000002Z", &us), OK);
    assert_int_equal(us, 86401000002);
    assert_int_equal(account_parse_time("2026-12-15T14:32:07Z", &us), OK);
    assert_int_equal(us, INT64_C(1797345127000000));
}

static void what_is_no_time_is_refused(void **state UNUSED)
{
    static const char *const wrong[] = {"", "2026", "2026-13-01T00:00:00Z", "2026-12-15T24:00:00Z",
                                        "not a time at all...."};
    int64_t us;
    assert_int_equal(account_parse_time(NULL, &us), ERR_INPUT);
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_int_equal(account_parse_time(wrong[i], &us), ERR_INPUT);
}

static void a_duration_is_in_the_largest_whole_unit(void **state UNUSED)
{
    static const struct {
        int64_t seconds;
        const char *english, *german;
    } cases[] = {{2592000, "30 days", "30 Tage"}, {86400, "1 day", "1 Tag"},          {90000, "25 hours", "25 Stunden"},
                 {3600, "1 hour", "1 Stunde"},    {5400, "90 minutes", "90 Minuten"}, {61, "61 seconds", "61 Sekunden"},
                 {1, "1 second", "1 Sekunde"},    {0, "0 seconds", "0 Sekunden"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        page.reader.language = LANGUAGE_EN;
        account_set_duration(&page, "grace", cases[i].seconds);
        assert_string_equal(text("grace"), cases[i].english);
        page.reader.language = LANGUAGE_DE;
        account_set_duration(&page, "grace", cases[i].seconds);
        assert_string_equal(text("grace"), cases[i].german);
    }
}

static void rows_have_words_and_counts_and_empty_ones_are_left_out(void **state UNUSED)
{
    AUTO(json)
    json_t *preview =
        json_pack("{s:[{s:s,s:s,s:i,s:b},{s:s,s:s,s:i,s:b},{s:s,s:s,s:n,s:b},{s:s,s:s,s:i,s:b},{s:s,s:s,s:i,s:b}]}",
                  "participants", "name", "call_recordings", "label", "", "rows", 10000, "more", 1, "name", "tags",
                  "label", "Tags", "rows", 0, "more", 0, "name", "archive", "label", "Archive", "rows", "more", 0,
                  "name", "reclaim.charges", "label", "", "rows", 3, "more", 0, "name", "reclaim.adjustments", "label",
                  "", "rows", 1, "more", 0);
    assert_non_null(preview);
    account_set_preview(&page, preview);
    const json_t *rows = json_object_get(page.values, "preview_rows"), *first = json_array_get(rows, 0);
    assert_int_equal(json_array_size(rows), 2);
    assert_string_equal(json_string_value(json_object_get(first, "label")), "Call recordings");
    assert_true(json_is_true(json_object_get(first, "more")));
    assert_true(json_is_null(json_object_get(json_array_get(rows, 1), "rows")));
    assert_int_equal(json_integer_value(json_object_get(page.values, "charges")), 4);
}

static void without_an_answer_the_page_has_the_settings(void **state UNUSED)
{
    account_set_public(&page, NULL);
    assert_string_equal(text("grace"), "1 hour");
    assert_true(json_is_false(json_object_get(page.values, "has_backups")));
    assert_int_equal(json_array_size(json_object_get(page.values, "erased")), 0);
}

static void a_countdown_never_goes_below_zero(void **state UNUSED)
{
    AUTO(json)
    json_t *customer = json_pack("{s:s,s:s,s:{s:s,s:n,s:s}}", "tm_deletion_scheduled", "2026-01-01T00:00:00.000000Z",
                                 "deletion_effective_at", "2026-01-31T00:00:00.000000Z", "freeze", "api",
                                 "2026-01-01T00:00:00.041000Z", "calls", "billing", "2026-01-01T00:00:00.000000Z");
    account_set_countdown(&page, customer, "2026-01-02T01:02:03.000000Z");
    const json_t *left = json_object_get(page.values, "left"), *stopped = json_object_get(page.values, "stopped");
    assert_int_equal(json_integer_value(json_object_get(left, "days")), 28);
    assert_int_equal(json_integer_value(json_object_get(left, "hours")), 22);
    assert_int_equal(json_integer_value(json_object_get(left, "minutes")), 57);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(stopped, 0), "ms")), 41);
    assert_true(json_is_false(json_object_get(json_array_get(stopped, 1), "applied")));
    account_set_countdown(&page, customer, "2026-02-01T00:00:00.000000Z");
    assert_true(json_is_true(json_object_get(page.values, "is_due")));
    assert_int_equal(json_integer_value(json_object_get(json_object_get(page.values, "left"), "days")), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_time_is_read_to_the_microsecond, begin, end),
        cmocka_unit_test_setup_teardown(what_is_no_time_is_refused, begin, end),
        cmocka_unit_test_setup_teardown(a_duration_is_in_the_largest_whole_unit, begin, end),
        cmocka_unit_test_setup_teardown(rows_have_words_and_counts_and_empty_ones_are_left_out, begin, end),
        cmocka_unit_test_setup_teardown(without_an_answer_the_page_has_the_settings, begin, end),
        cmocka_unit_test_setup_teardown(a_countdown_never_goes_below_zero, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
