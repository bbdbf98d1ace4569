#include "http/router.h"

#include "../base/unit.h"

static void ignore(struct request *rq)
{
    (void)rq;
}

static const struct family families[] = {
    {.prefix = "/functions/v1/", .cors = true, .refuse = refuse_by_status},
    {.prefix = "/", .refuse = refuse_by_status},
};
static const struct route routes[] = {
    {.method = METHOD_POST, .path = "/functions/v1/check-email-status", .handle = ignore},
    {.method = METHOD_GET, .path = "/openapi.json", .handle = ignore},
    {.method = METHOD_POST, .path = "/openapi.json", .handle = ignore},
    {.method = METHOD_ANY, .path = "/gate/*", .handle = ignore},
};
static const struct router router = {families, COUNT_OF(families), routes, COUNT_OF(routes)};

static struct request ask(enum method method, const char *path, unsigned *ret_known)
{
    struct request rq = {.method = method, .path = str_of(path)};
    *ret_known = router_find(&router, &rq);
    return rq;
}

static void a_path_and_method_find_their_route_and_family(void **state UNUSED)
{
    unsigned known;
    struct request rq = ask(METHOD_POST, "/functions/v1/check-email-status", &known);
    assert_ptr_equal(rq.route, &routes[0]);
    assert_ptr_equal(rq.family, &families[0]);
    rq = ask(METHOD_GET, "/openapi.json", &known);
    assert_ptr_equal(rq.route, &routes[1]);
    assert_ptr_equal(rq.family, &families[1]);
    assert_int_equal(known, METHOD_GET | METHOD_HEAD | METHOD_POST);
}

static void a_head_is_answered_as_a_get(void **state UNUSED)
{
    unsigned known;
    assert_ptr_equal(ask(METHOD_HEAD, "/openapi.json", &known).route, &routes[1]);
}

static void another_method_learns_which_are_allowed(void **state UNUSED)
{
    unsigned known;
    struct request rq = ask(METHOD_GET, "/functions/v1/check-email-status", &known);
    assert_null(rq.route);
    assert_int_equal(known, METHOD_POST | METHOD_OPTIONS);
    struct arena *arena = arena_new(256, 4096);
    assert_string_equal(methods_list(arena, known).at, "POST, OPTIONS");
    arena_free(arena);
}

static void a_star_matches_everything_beneath(void **state UNUSED)
{
    unsigned known;
    static const char *const beneath[] = {"/gate/", "/gate/rest/v1/things", "/gate//x", "/gate/../openapi.json",
                                          "/gate/%zz"};
    for (size_t i = 0; i < COUNT_OF(beneath); i++)
        assert_ptr_equal(ask(METHOD_DELETE, beneath[i], &known).route, &routes[3]);
    static const char *const others[] = {"/gate", "/gates/x", "/Gate/x", "gate/x", "/x/gate/x"};
    for (size_t i = 0; i < COUNT_OF(others); i++)
        assert_null(ask(METHOD_GET, others[i], &known).route);
}

static void unknown_paths_have_a_family_and_no_methods(void **state UNUSED)
{
    unsigned known;
    static const char *const paths[] = {"/functions/v1/", "/functions/v1/check-email-statuss", "/nothing", "*", ""};
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        struct request rq = ask(METHOD_POST, paths[i], &known);
        assert_null(rq.route);
        assert_non_null(rq.family);
        assert_int_equal(known, 0);
    }
    assert_int_equal(method_parse("post"), METHOD_OTHER);
    assert_int_equal(method_parse("DELETE"), METHOD_DELETE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_and_method_find_their_route_and_family),
        cmocka_unit_test(a_head_is_answered_as_a_get),
        cmocka_unit_test(another_method_learns_which_are_allowed),
        cmocka_unit_test(a_star_matches_everything_beneath),
        cmocka_unit_test(unknown_paths_have_a_family_and_no_methods),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
