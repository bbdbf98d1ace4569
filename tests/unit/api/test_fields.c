/* Fields of a JSON body: the first problem is kept, and said in one way. */
#include "api/fields.h"

#include "../base/unit.h"

static const struct field name = {.name = "name", .required = true, .bytes_max = 5},
                          note = {.name = "note", .code = "INVALID_NOTE", .message = "note is a string."},
                          id = {.name = "id"}, strict_note = {.name = "note", .refuses_null = true},
                          count = {.name = "count"};

static struct fields read(struct arena *arena, const char *body)
{
    return fields_read(arena, str_of(body), "INVALID_BODY", "The body must be a JSON object.");
}

static void a_body_that_is_no_object_is_the_first_problem(void **state UNUSED)
{
    AUTO(arena) struct arena *arena = arena_new(1024, 65536);
    static const char *const bodies[] = {"", "[]", "1", "{", "{\"name\":\"a\",\"name\":\"b\"}"};
    for (size_t i = 0; i < COUNT_OF(bodies); i++) {
        AUTO(fields) struct fields f = read(arena, bodies[i]);
        assert_null(field_copy(&f, &name));
        assert_int_equal(f.err, ERR_INPUT);
        assert_string_equal(f.code, "INVALID_BODY");
        assert_string_equal(f.message, "The body must be a JSON object.");
    }
}

static void a_problem_is_named_by_its_field(void **state UNUSED)
{
    AUTO(arena) struct arena *arena = arena_new(1024, 65536);
    static const char *const cases[][2] = {
        {"{}", "name is missing."},
        {"{\"name\":null}", "name is missing."},
        {"{\"name\":1}", "name must be a string."},
        {"{\"name\":\"abcdef\"}", "name is too long."},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        AUTO(fields) struct fields f = read(arena, cases[i][0]);
        assert_null(field_copy(&f, &name));
        assert_string_equal(f.code, "INVALID_INPUT");
        assert_string_equal(f.message, cases[i][1]);
    }
}

static void a_field_with_a_message_of_its_own_uses_it(void **state UNUSED)
{
    AUTO(arena) struct arena *arena = arena_new(1024, 65536);
    AUTO(fields) struct fields f = read(arena, "{\"note\":7,\"name\":1}");
    assert_null(field_copy(&f, &note));
    assert_null(field_copy(&f, &name)); /* a second problem changes nothing */
    assert_string_equal(f.code, "INVALID_NOTE");
    assert_string_equal(f.message, "note is a string.");
}

static void null_is_absent_unless_the_field_refuses_it(void **state UNUSED)
{
    AUTO(arena) struct arena *arena = arena_new(1024, 65536);
    AUTO(fields) struct fields f = read(arena, "{\"note\":null}");
    assert_null(field_copy(&f, &note));
    assert_int_equal(f.err, OK);
    assert_null(field_copy(&f, &strict_note));
    assert_string_equal(f.message, "note must be a string.");
}

static void values_are_read_by_their_type(void **state UNUSED)
{
    AUTO(arena) struct arena *arena = arena_new(1024, 65536);
    AUTO(fields)
    struct fields f = read(arena, "{\"name\":\"abcde\",\"count\":7,\"id\":\"6F9619FF-8B86-4011-B42D-00C04FC964FF\"}");
    int64_t n = 0;
    assert_string_equal(field_copy(&f, &name), "abcde");
    assert_true(field_integer(&f, &count, 0, 7, &n));
    assert_int_equal(n, 7);
    assert_string_equal(field_uuid(&f, &id), "6F9619FF-8B86-4011-B42D-00C04FC964FF");
    assert_int_equal(f.err, OK);
    assert_null(field_uuid(&f, &name));
    assert_string_equal(f.message, "name must be a UUID.");
}

static void a_number_out_of_bounds_is_none(void **state UNUSED)
{
    AUTO(arena) struct arena *arena = arena_new(1024, 65536);
    static const char *const bodies[] = {"{\"count\":8}", "{\"count\":-1}", "{\"count\":1.0}", "{\"count\":\"1\"}"};
    for (size_t i = 0; i < COUNT_OF(bodies); i++) {
        AUTO(fields) struct fields f = read(arena, bodies[i]);
        int64_t n = 99;
        assert_false(field_integer(&f, &count, 0, 7, &n));
        assert_int_equal(n, 99);
        assert_int_equal(f.err, ERR_INPUT);
    }
}

static void a_full_arena_is_not_the_callers_mistake(void **state UNUSED)
{
    AUTO(arena) struct arena *arena = arena_new(64, 64);
    AUTO(fields) struct fields f = read(arena, "{\"name\":\"abcde\"}");
    while (arena_copy(arena, STR("abcde")).at)
        ;
    assert_null(field_copy(&f, &name));
    assert_int_equal(f.err, ERR_FULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_body_that_is_no_object_is_the_first_problem),
        cmocka_unit_test(a_problem_is_named_by_its_field),
        cmocka_unit_test(a_field_with_a_message_of_its_own_uses_it),
        cmocka_unit_test(null_is_absent_unless_the_field_refuses_it),
        cmocka_unit_test(values_are_read_by_their_type),
        cmocka_unit_test(a_number_out_of_bounds_is_none),
        cmocka_unit_test(a_full_arena_is_not_the_callers_mistake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
