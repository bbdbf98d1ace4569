#include "base/log.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/json.h"
#include "unit.h"

/* A socket that keeps message boundaries: one recv() returns the bytes of one write(). */
static int ends[2];

static int redirect(void **state UNUSED)
{
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return -1;
    log_to_fd(ends[1]);
    log_threshold(LOG_DEBUG);
    log_correlate(NULL);
    return 0;
}

static int restore(void **state UNUSED)
{
    log_to_fd(STDERR_FILENO);
    log_threshold(LOG_INFO);
    log_correlate(NULL);
    return close(ends[0]) | close(ends[1]);
}

static struct str written(void)
{
    static char line[65536];
    ssize_t len = recv(ends[0], line, sizeof line, MSG_DONTWAIT);
    return (struct str){len < 0 ? NULL : line, len < 0 ? 0 : (size_t)len};
}

/* Checks that it is exactly one line: the newline at its end is the only control character. */
static struct str whole(struct str line)
{
    if (!line.at || line.len == 0 || line.len > 4096) {
        fail_msg("%zu bytes are no line", line.len);
        return STR("");
    }
    for (size_t i = 0; i + 1 < line.len; i++)
        assert_true((unsigned char)line.at[i] >= 0x20 && line.at[i] != 0x7F);
    assert_int_equal(line.at[line.len - 1], '\n');
    return line;
}

static json_t *parsed(struct str line)
{
    struct why why = {""};
    json_t *root = json_read_object(whole(line), &why);
    if (!root)
        fail_msg("%s: %.*s", why.text, STR_ARGS(line));
    return root;
}

static void check_str(const json_t *root, const char *key, const char *want)
{
    struct str s;
    assert_int_equal(json_get_str(root, key, &s), OK);
    assert_str(s, want);
}

static void a_line_is_one_write_with_its_keys_in_order(void **state UNUSED)
{
    log_correlate("0123abcd-0000-4000-8000-000000000000");
    log_warn("listening", F_STR("address", "[::1]:8080"), F_INT("loops", -2), F_REAL("load", 0.25),
             F_BYTES("hash", ((struct str){"abcdef", 3})));
    struct str line = written();
    assert_true(line.len > 33);
    assert_memory_equal(line.at, "{\"time\":\"", 9);
    assert_memory_equal(line.at + 32, "Z\"", 2);
    assert_str(
        ((struct str){line.at + 34, line.len - 34}),
        ",\"level\":\"warn\",\"event\":\"listening\",\"correlation_id\":\"0123abcd-0000-4000-8000-000000000000\","
        "\"address\":\"[::1]:8080\",\"loops\":-2,\"load\":0.25,\"hash\":\"abc\"}\n");
    assert_absent(written());
}

static void a_line_needs_neither_fields_nor_a_correlation_id(void **state UNUSED)
{
    log_correlate("x");
    log_correlate(NULL);
    log_info("ready");
    struct str line = written();
    assert_true(line.len > 34);
    assert_str(((struct str){line.at + 34, line.len - 34}), ",\"level\":\"info\",\"event\":\"ready\"}\n");
}

static void lines_below_the_threshold_are_dropped(void **state UNUSED)
{
    static const enum log_level levels[] = {LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR};
    static const char *const names[] = {"debug", "info", "warn", "error"};
    for (size_t threshold = 0; threshold < COUNT_OF(levels); threshold++) {
        log_threshold(levels[threshold]);
        for (size_t level = 0; level < COUNT_OF(levels); level++) {
            log_write(levels[level], "tried", NULL, 0);
            struct str line = written();
            assert_int_equal(line.at != NULL, level >= threshold);
            if (line.at) {
                AUTO(json) json_t *root = parsed(line);
                check_str(root, "level", names[level]);
            }
        }
    }
}

static void no_value_can_forge_a_line(void **state UNUSED)
{
    log_correlate("a\"b\n");
    log_error("bad\r\nevent", F_STR("path", "/x\n{\"level\":\"info\"}\n\x1B[2J\x7F\xC2\x9B"),
              F_BYTES("bytes", STR("\0\xFF\xC0")), F_STR("none", NULL));
    struct str line = whole(written());
    AUTO(json) json_t *root = json_loadb(line.at, line.len, JSON_ALLOW_NUL, NULL);
    assert_non_null(root);
    check_str(root, "event", "bad\r\nevent");
    check_str(root, "correlation_id", "a\"b\n");
    check_str(root, "path", "/x\n{\"level\":\"info\"}\n\x1B[2J\x7F\xC2\x9B");
    assert_true(json_is_null(json_object_get(root, "none")));
}

static void what_is_no_number_is_null(void **state UNUSED)
{
    log_info("measured", F_REAL("a", NAN), F_REAL("b", INFINITY));
    AUTO(json) json_t *root = parsed(written());
    assert_true(json_is_null(json_object_get(root, "a")));
    assert_true(json_is_null(json_object_get(root, "b")));
}

static void long_values_are_cut(void **state UNUSED)
{
    char text[20000];
    memset(text, 'x', sizeof text);
    log_info("cut", F_BYTES("long", ((struct str){text, sizeof text})), F_INT("behind", 7));
    AUTO(json) json_t *root = parsed(written());
    struct str s;
    assert_int_equal(json_get_str(root, "long", &s), OK);
    assert_true(s.len >= 1000 && s.len <= 1030);
    assert_memory_equal(s.at + s.len - 3, "…", 3);
    assert_int_equal(json_integer_value(json_object_get(root, "behind")), 7);
}

/* For any fields of any length, the result is one line. */
static void lines_are_bounded_and_stay_json(void **state UNUSED)
{
    static const char tricky[] = "\x01\"\\\xE2\x82\xAC\n\xFFz";
    static char text[6000];
    uint64_t numbers = 88172645463325252;
    for (int round = 0; round < 400; round++) {
        for (size_t i = 0; i < sizeof text; i++)
            text[i] = round % 2 ? tricky[number_below(&numbers, sizeof tricky - 1)] : 'x';
        struct log_field fields[30];
        char names[30][24];
        size_t count = number_below(&numbers, COUNT_OF(fields) + 1);
        for (size_t i = 0; i < count; i++) {
            size_t most = round % 3 ? 400 : 5000;
            (void)snprintf(names[i], sizeof names[i], "f%zu", i);
            fields[i] = number_below(&numbers, 4)
                            ? F_BYTES(names[i], ((struct str){text, number_below(&numbers, most)}))
                            : F_INT(names[i], INT64_MIN);
        }
        log_write(LOG_INFO, "filled", fields, count);
        AUTO(json) json_t *root = parsed(written());
        check_str(root, "event", "filled");
        if (count > 0 && !json_object_get(root, "f0"))
            fail_msg("a line has room for its first field");
        assert_absent(written());
    }
}

/* Near the end of a line, a field may not fit while a shorter one after it does. */
static void a_field_that_does_not_fit_is_left_out_whole(void **state UNUSED)
{
    char text[1000];
    memset(text, 'x', sizeof text);
    int left_out = 0;
    for (size_t len = 800; len < sizeof text; len++) {
        struct str full = {text, sizeof text};
        log_info("filled", F_BYTES("a", full), F_BYTES("b", full), F_BYTES("c", full),
                 F_BYTES("d", ((struct str){text, len})), F_INT("longer_than_its_neighbour", INT64_MIN),
                 F_STR("z", ""));
        AUTO(json) json_t *root = parsed(written());
        left_out += json_object_get(root, "z") && !json_object_get(root, "longer_than_its_neighbour");
    }
    assert_true(left_out > 0);
}

static void the_last_value_is_cut_to_what_room_is_left(void **state UNUSED)
{
    char text[1000];
    memset(text, 'x', sizeof text);
    struct str full = {text, sizeof text};
    log_info("filled", F_BYTES("a", full), F_BYTES("b", full), F_BYTES("c", full), F_BYTES("d", full),
             F_BYTES("e", full));
    struct str line = written();
    assert_true(line.len >= 4090);
    AUTO(json) json_t *root = parsed(line);
    struct str s;
    assert_int_equal(json_get_str(root, "d", &s), OK);
    assert_memory_equal(s.at + s.len - 3, "…", 3);
}

static void a_monstrous_event_still_makes_a_line(void **state UNUSED)
{
    static char text[20000];
    memset(text, '\x01', sizeof text - 1);
    log_correlate(text);
    log_write(LOG_INFO, text, (struct log_field[]){F_STR("a", text), F_STR("b", text), F_STR("c", text)}, 3);
    AUTO(json) json_t *root = parsed(written());
    check_str(root, "level", "info");
}

static void errno_survives_logging(void **state UNUSED)
{
    log_to_fd(-1);
    errno = ENOENT;
    log_info("lost");
    assert_int_equal(errno, ENOENT);
}

#define LINES 500

static void *log_many(void *name)
{
    log_correlate(name);
    for (int i = 0; i < LINES; i++)
        log_info("counted", F_STR("who", name), F_INT("n", i));
    return NULL;
}

static void threads_keep_their_lines_and_correlation_ids_apart(void **state UNUSED)
{
    char names[4][8] = {"first", "second", "third", "fourth"};
    int64_t next[4] = {0};
    pthread_t threads[4];
    log_correlate("main");
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, log_many, names[i]), 0);
    for (size_t lines = 0; lines < LINES * COUNT_OF(threads); lines++) {
        static char bytes[65536];
        ssize_t len = read(ends[0], bytes, sizeof bytes);
        assert_true(len > 0);
        AUTO(json) json_t *root = parsed((struct str){bytes, (size_t)len});
        struct str who, id;
        assert_int_equal(json_get_str(root, "who", &who), OK);
        assert_int_equal(json_get_str(root, "correlation_id", &id), OK);
        assert_true(str_eq(who, id));
        size_t i = 0;
        while (!str_eq(who, str_of(names[i])))
            i++;
        assert_int_equal(json_integer_value(json_object_get(root, "n")), next[i]++);
    }
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    log_info("done");
    AUTO(json) json_t *root = parsed(written());
    check_str(root, "correlation_id", "main");
}

static void *change_settings(void *unused UNUSED)
{
    for (int i = 0; i < 1000; i++) {
        log_threshold(i % 2 ? LOG_WARN : LOG_INFO);
        log_to_fd(ends[1]);
        log_debug("never");
    }
    return NULL;
}

static void settings_may_change_while_others_log(void **state UNUSED)
{
    pthread_t thread;
    log_threshold(LOG_INFO);
    assert_int_equal(pthread_create(&thread, NULL, change_settings, NULL), 0);
    for (int i = 0; i < 1000; i++) {
        log_warn("always");
        AUTO(json) json_t *root = parsed(written());
        check_str(root, "event", "always");
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
}

int main(void)
{
#define LOG_TEST(test) cmocka_unit_test_setup_teardown(test, redirect, restore)
    const struct CMUnitTest tests[] = {
        LOG_TEST(a_line_is_one_write_with_its_keys_in_order),
        LOG_TEST(a_line_needs_neither_fields_nor_a_correlation_id),
        LOG_TEST(lines_below_the_threshold_are_dropped),
        LOG_TEST(no_value_can_forge_a_line),
        LOG_TEST(what_is_no_number_is_null),
        LOG_TEST(long_values_are_cut),
        LOG_TEST(lines_are_bounded_and_stay_json),
        LOG_TEST(a_field_that_does_not_fit_is_left_out_whole),
        LOG_TEST(the_last_value_is_cut_to_what_room_is_left),
        LOG_TEST(a_monstrous_event_still_makes_a_line),
        LOG_TEST(errno_survives_logging),
        LOG_TEST(threads_keep_their_lines_and_correlation_ids_apart),
        LOG_TEST(settings_may_change_while_others_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
