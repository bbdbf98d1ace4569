/* A page's request that another route answers: the endpoint sees what the page passes on and nothing else, and the page
 * makes its reply of the answer, of both versions when there are two. */
#include "http/forward.h"

#include <string.h>

#include "../base/unit.h"
#include "http/loop.h"
#include "http/reply.h"

static int handled, done;
static struct alternative_reply *second;

static void endpoint(struct request *rq)
{
    handled++;
    assert_str(rq->path, "/v1/things/a%2Fb");
    assert_str(rq->params[0], "a%2Fb"); /* callers build paths from ids: nothing is decoded */
    assert_int_equal(rq->method, METHOD_POST);
    assert_str(rq->body, "{}");
    assert_false(rq->wants_problem);
    assert_null(rq->reply.headers);
    assert_true(rq->hold.until_ns > 0);
    assert_str(forward_header(rq->forward, "authorization"), "Bearer key");
    assert_str(forward_header(rq->forward, "X-Reclaim-Customer"), "c1");
    assert_absent(forward_header(rq->forward, "Cookie"));
    assert_absent(forward_header(rq->forward, "Origin"));
    assert_str(forward_query(rq->forward, "limit"), "5");
    assert_str(forward_query(rq->forward, "q"), "a%20b");
    assert_str(forward_query(rq->forward, "flag"), "");
    assert_absent(forward_query(rq->forward, "none"));
    reply_send(rq, 201);
}

static void endpoint_with_two_versions(struct request *rq)
{
    handled++;
    reply_body(rq, "text/plain", STR("failed"));
    rq->reply.status = 503;
    second = reply_with_alternative(rq);
    rq->reply = (struct reply){0};
    reply_body(rq, "text/plain", STR("sent"));
    reply_send(rq, 200);
}

static const struct hold_rule hold = {.hold_ms = 500};
static const struct family families[] = {{.prefix = "/", .refuse = refuse_by_status}};
static const struct route routes[] = {
    {.method = METHOD_POST, .path = "/page"},
    {.method = METHOD_POST, .path = "/v1/things/{id}", .handle = endpoint, .hold = &hold},
    {.method = METHOD_POST, .path = "/two", .handle = endpoint_with_two_versions},
};
static const struct router router = {families, COUNT_OF(families), routes, COUNT_OF(routes)};

/* Instead of the server's. */
const struct router *visit_router(const struct request *rq UNUSED)
{
    return &router;
}

void reply_send(struct request *rq, int status)
{
    rq->reply.status = status;
    if (rq->forward)
        assert_true(forward_answered(rq));
}

static struct request rq;

static int begin(void **state UNUSED)
{
    rq = (struct request){.arena = arena_new(1024, 65536),
                          .method = METHOD_POST,
                          .path = STR("/page"),
                          .body = STR("the form"),
                          .wants_problem = true,
                          .arrived_ns = 1000,
                          .route = &routes[0],
                          .family = families};
    rq.params[0] = STR("before");
    handled = done = 0;
    return rq.arena ? 0 : -1;
}

static int end(void **state UNUSED)
{
    reply_make_final(&rq);
    alternative_reply_free(second);
    second = NULL;
    arena_free(rq.arena);
    return 0;
}

static bool make_page(struct request *r, void *context)
{
    done++;
    assert_ptr_equal(context, &rq);
    assert_null(r->forward);
    assert_str(r->path, "/page");
    assert_str(r->body, "the form");
    assert_str(r->params[0], "before");
    assert_ptr_equal(r->route, &routes[0]);
    bool sent = r->reply.body.at && str_eq(r->reply.body, STR("sent"));
    int status = r->reply.status;
    r->reply = (struct reply){.status = status};
    reply_body(r, "text/html", sent ? STR("page: sent") : STR("page: other"));
    return true;
}

static void the_endpoint_sees_what_the_page_passes_on(void **state UNUSED)
{
    request_forward(&rq, &(struct forward){.method = METHOD_POST,
                                           .path = STR("/v1/things/a%2Fb"),
                                           .query = STR("limit=5&q=a%20b&flag"),
                                           .body = STR("{}"),
                                           .bearer = "key",
                                           .customer = "c1",
                                           .done = make_page,
                                           .context = &rq});
    assert_int_equal(handled, 1);
    assert_int_equal(done, 1);
    assert_int_equal(rq.reply.status, 201);
    assert_str(rq.reply.body, "page: other");
    assert_int_equal(rq.hold.until_ns, 1000 + INT64_C(500000000)); /* from the arrival of the page's request */
}

static void an_answer_with_two_versions_makes_two_pages(void **state UNUSED)
{
    request_forward(&rq,
                    &(struct forward){.method = METHOD_POST, .path = STR("/two"), .done = make_page, .context = &rq});
    assert_int_equal(handled, 1);
    assert_int_equal(done, 2);
    assert_str(rq.reply.body, "page: sent");
    assert_str(rq.otherwise->body, "page: other");
    assert_int_equal(rq.otherwise->status, 503);
    assert_true(alternative_reply_choose(second));
    reply_make_final(&rq);
    assert_str(rq.reply.body, "page: other");
}

static void a_path_that_is_not_served_ends_with_404(void **state UNUSED)
{
    request_forward(
        &rq, &(struct forward){.method = METHOD_GET, .path = STR("/nothing"), .done = make_page, .context = &rq});
    assert_int_equal(handled, 0);
    assert_int_equal(done, 1);
    assert_int_equal(rq.reply.status, 404);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_endpoint_sees_what_the_page_passes_on, begin, end),
        cmocka_unit_test_setup_teardown(an_answer_with_two_versions_makes_two_pages, begin, end),
        cmocka_unit_test_setup_teardown(a_path_that_is_not_served_ends_with_404, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
