/* The lines of finished requests: whole JSON objects, never waiting for a slow reader. */
#include "http/access_log.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/unit.h"
#include "base/json.h"

#define ID "7e3f5a10-0000-4000-8000-000000000001"

static int ends[2];

static int redirect(void **state UNUSED)
{
    if (pipe2(ends, O_CLOEXEC) != 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0)
        return -1;
    log_to_fd(ends[1]);
    return 0;
}

static int restore(void **state UNUSED)
{
    log_to_fd(STDERR_FILENO);
    log_threshold(LOG_INFO);
    return close(ends[0]) | close(ends[1]);
}

static void add_pass(struct log_batch *batch, int status)
{
    access_log_add(
        batch,
        &(struct access){
            .correlation_id = ID, .route = "/gate", .method = "GET", .status = status, .ns = 51234, .work_ns = -1});
}

static void a_line_has_route_method_outcome_status_milliseconds_and_id(void **state UNUSED)
{
    struct log_batch batch = {0};
    char text[8192] = "";
    struct why why = {""};
    access_log_add(&batch, &(struct access){.correlation_id = ID,
                                            .route = "/v1/customers/{id}",
                                            .method = "DELETE",
                                            .outcome = "NOT_FOUND",
                                            .status = 404,
                                            .ns = 500123456,
                                            .work_ns = 7009999});
    assert_true(log_batch_write(&batch));
    ssize_t len = read(ends[0], text, sizeof text - 1);
    assert_true(len > 0);
    json_t *line = json_read_object((struct str){text, (size_t)len}, &why);
    assert_non_null(line);
    assert_string_equal(json_string_value(json_object_get(line, "level")), "info");
    assert_string_equal(json_string_value(json_object_get(line, "event")), "request");
    assert_string_equal(json_string_value(json_object_get(line, "correlation_id")), ID);
    assert_string_equal(json_string_value(json_object_get(line, "route")), "/v1/customers/{id}");
    assert_string_equal(json_string_value(json_object_get(line, "method")), "DELETE");
    assert_string_equal(json_string_value(json_object_get(line, "outcome")), "NOT_FOUND");
    assert_int_equal(json_integer_value(json_object_get(line, "status")), 404);
    assert_non_null(strstr(text, "\"ms\":500.12,\"work_ms\":7.00}\n"));
    assert_int_equal(strlen(json_string_value(json_object_get(line, "time"))), 24);
    json_decref(line);
    log_batch_free(&batch);
}

static void lines_of_a_turn_are_written_together(void **state UNUSED)
{
    struct log_batch batch = {0};
    char text[65536];
    for (int i = 0; i < 100; i++)
        add_pass(&batch, 200);
    assert_int_equal(read(ends[0], text, sizeof text), -1);
    assert_true(log_batch_write(&batch));
    ssize_t len = read(ends[0], text, sizeof text);
    assert_true(len > 0);
    int lines = 0;
    for (ssize_t i = 0; i < len; i++)
        lines += text[i] == '\n';
    assert_int_equal(lines, 100);
    assert_int_equal(text[len - 1], '\n');
    log_batch_free(&batch);
}

/* More than the pipe takes, then more than the batch keeps: the writer never waits, what is read are whole lines. */
static void a_reader_that_is_slow_holds_up_nothing(void **state UNUSED)
{
    struct log_batch batch = {0};
    int added = 4000, seen = 0, broken = 0;
    for (int i = 0; i < added; i++) {
        add_pass(&batch, 200);
        (void)log_batch_write(&batch);
    }
    assert_false(log_batch_write(&batch));
    static char text[400000];
    char *line = text, *stop;
    size_t len = 0;
    for (int tries = 0; tries < 1000; tries++) {
        ssize_t got = read(ends[0], text + len, sizeof text - len);
        len += got > 0 ? (size_t)got : 0;
        if (log_batch_write(&batch) && got <= 0)
            break;
    }
    for (; (stop = memchr(line, '\n', (size_t)(text + len - line))); line = stop + 1, seen++)
        broken += *line != '{' || stop[-1] != '}';
    assert_int_equal(line - text, len);
    assert_int_equal(broken, 0);
    assert_in_range(seen, 1000, added - 1);
    add_pass(&batch, 200); /* and there is room again */
    assert_true(log_batch_write(&batch));
    assert_true(read(ends[0], text, sizeof text) > 0);
    log_batch_free(&batch);
}

static void nothing_is_written_above_the_level_info(void **state UNUSED)
{
    struct log_batch batch = {0};
    char text[16];
    log_threshold(LOG_WARN);
    add_pass(&batch, 200);
    assert_true(log_batch_write(&batch));
    assert_int_equal(read(ends[0], text, sizeof text), -1);
    log_batch_free(&batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_line_has_route_method_outcome_status_milliseconds_and_id, redirect, restore),
        cmocka_unit_test_setup_teardown(lines_of_a_turn_are_written_together, redirect, restore),
        cmocka_unit_test_setup_teardown(a_reader_that_is_slow_holds_up_nothing, redirect, restore),
        cmocka_unit_test_setup_teardown(nothing_is_written_above_the_level_info, redirect, restore),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
