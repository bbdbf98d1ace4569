/* The client: every call ends within its time limit with the correct result; only allowed URLs are requested. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "client/client.h"
#include "fake.h"

#define LONG_NS (30 * NS_PER_S)

struct ask {
    struct client_call call;
    bool over;
    int times;
    char answer[256];
};

static struct client *client;

static void done(struct client_call *call)
{
    struct ask *a = OWNER_OF(call, struct ask, call);
    a->over = true;
    a->times++;
    snprintf(a->answer, sizeof a->answer, "%.*s", call->answer.len < 200 ? (int)call->answer.len : 200,
             call->answer.at);
}

static void turn_until(const bool *over)
{
    for (int64_t end = clock_ns() + LONG_NS; !*over;) {
        assert_true(clock_ns() < end);
        client_turn(client, clock_ns() + NS_PER_S / 10);
    }
}

static struct ask post_to(const char *url, int64_t limit_ns)
{
    static const char *const headers[] = {"Content-Type: application/json", "X-Ours: yes", NULL};
    return (struct ask){
        .call = {.url = url, .headers = headers, .body = STR("{\"hello\":1}"), .limit_ns = limit_ns, .done = done}};
}

static int set_up(void **state)
{
    (void)state;
    client = client_new(&(struct client_config){NULL, 64});
    return client ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    client_free(client);
    return 0;
}

static void a_post_arrives_whole_and_its_answer_comes_back(void **state)
{
    (void)state;
    struct fake *fake = fake_http();
    struct ask a = post_to(fake_url(fake), LONG_NS);
    client_send(client, &a.call);
    assert_false(a.over);
    turn_until(&a.over);
    assert_int_equal(a.call.err, OK);
    assert_int_equal(a.call.status, 200);
    assert_string_equal(a.answer, "{\"id\":\"1\"}");
    const char *seen = fake_request(fake, 0);
    assert_non_null(strstr(seen, "POST /send HTTP/1.1\r\n"));
    assert_non_null(strstr(seen, "X-Ours: yes\r\n"));
    assert_non_null(strstr(seen, "User-Agent: reclaim/"));
    assert_string_equal(strstr(seen, "\r\n\r\n") + 4, "{\"hello\":1}");
    fake_free(fake);
}

static void every_way_a_server_can_fail_has_its_name(void **state)
{
    (void)state;
    static const struct {
        struct fake_step step;
        enum err err;
        int status;
    } ways[] = {
        {{FAKE_ANSWER, 500, NULL, 0}, OK, 500},      {{FAKE_ANSWER, 429, NULL, 0}, OK, 429},
        {{FAKE_ANSWER, 400, "garbage", 0}, OK, 400}, {{FAKE_ANSWER, 302, NULL, 0}, OK, 302},
        {{FAKE_SILENT, 0, NULL, 0}, ERR_TIMEOUT, 0}, {{FAKE_CLOSE, 0, NULL, 0}, ERR_CLOSED, 0},
        {{FAKE_CUT, 200, NULL, 0}, ERR_CLOSED, 200}, {{FAKE_NO_HTTP, 0, NULL, 0}, ERR_CLOSED, 0},
        {{FAKE_HUGE, 200, NULL, 0}, ERR_FULL, 200},
    };
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        struct fake *fake = fake_http();
        fake_script(fake, &ways[i].step, 1);
        struct ask a = post_to(fake_url(fake), ways[i].err == ERR_TIMEOUT ? NS_PER_S / 4 : LONG_NS);
        client_send(client, &a.call);
        turn_until(&a.over);
        assert_int_equal(a.call.err, ways[i].err);
        if (ways[i].status)
            assert_int_equal(a.call.status, ways[i].status);
        assert_int_equal(a.times, 1);
        assert_int_equal(fake_count(fake), 1); /* redirects are not followed */
        fake_free(fake);
    }
}

static void a_call_is_sent_once_however_it_ends(void **state)
{
    (void)state;
    static const struct fake_step steps[] = {{FAKE_ANSWER, 200, NULL, 0}, {FAKE_CLOSE, 0, NULL, 0}};
    struct fake *fake = fake_http();
    fake_script(fake, steps, COUNT_OF(steps));
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        struct ask a = post_to(fake_url(fake), LONG_NS);
        client_send(client, &a.call);
        turn_until(&a.over);
        assert_int_equal(a.call.err, i ? ERR_CLOSED : OK);
    }
    assert_int_equal(fake_count(fake), 2);
    fake_free(fake);
}

static void a_server_that_is_not_there_is_closed(void **state)
{
    (void)state;
    struct fake *fake = fake_http();
    char url[64];
    snprintf(url, sizeof url, "%s", fake_url(fake));
    fake_free(fake);
    struct ask a = post_to(url, LONG_NS);
    client_send(client, &a.call);
    turn_until(&a.over);
    assert_int_equal(a.call.err, ERR_CLOSED);
}

static void an_answer_that_trickles_ends_with_its_time(void **state)
{
    (void)state;
    static const struct fake_step slow = {FAKE_TRICKLE, 200, NULL, 0};
    struct fake *fake = fake_http();
    fake_script(fake, &slow, 1);
    struct ask a = post_to(fake_url(fake), NS_PER_S / 4);
    client_send(client, &a.call);
    turn_until(&a.over);
    assert_int_equal(a.call.err, ERR_TIMEOUT);
    fake_free(fake);
}

static void addresses_that_may_not_be_asked_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *url;
        enum err http, smtp;
    } urls[] = {
        {"https://api.example.com/emails", OK, ERR_INPUT},
        {"http://127.0.0.1:8025/emails", OK, ERR_INPUT},
        {"http://127.9.9.9/", OK, ERR_INPUT},
        {"http://[::1]:80/", OK, ERR_INPUT},
        {"http://localhost:80/", OK, ERR_INPUT},
        {"http://LOCALHOST/", OK, ERR_INPUT},
        {"http://api.example.com/emails", ERR_INPUT, ERR_INPUT},
        {"http://127.0.0.1@example.com/", ERR_INPUT, ERR_INPUT},
        {"http://127.0.0.1.example.com/", ERR_INPUT, ERR_INPUT},
        {"http://10.0.0.1/", ERR_INPUT, ERR_INPUT},
        {"http://[::2]/", ERR_INPUT, ERR_INPUT},
        {"file:///etc/passwd", ERR_INPUT, ERR_INPUT},
        {"ftp://127.0.0.1/", ERR_INPUT, ERR_INPUT},
        {"https://", ERR_INPUT, ERR_INPUT},
        {"https://exa mple.com/", ERR_INPUT, ERR_INPUT},
        {"https://example.com/\r\nX: y", ERR_INPUT, ERR_INPUT},
        {"example.com", ERR_INPUT, ERR_INPUT},
        {"", ERR_INPUT, ERR_INPUT},
        {"smtps://user:pass@mail.example.com:465", ERR_INPUT, OK},
        {"smtp://mail.example.com:587", ERR_INPUT, OK},
    };
    for (size_t i = 0; i < COUNT_OF(urls); i++) {
        assert_int_equal(client_check_url(urls[i].url, CLIENT_HTTP), urls[i].http);
        assert_int_equal(client_check_url(urls[i].url, CLIENT_SMTP), urls[i].smtp);
        if (!urls[i].http || !urls[i].smtp)
            continue;
        struct ask a = post_to(urls[i].url, LONG_NS);
        client_send(client, &a.call);
        assert_false(a.over);
        turn_until(&a.over);
        assert_int_equal(a.call.err, ERR_INPUT);
    }
}

static void proxies_of_the_environment_are_ignored(void **state)
{
    (void)state;
    setenv("http_proxy", "http://127.0.0.1:1", 1);
    setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
    struct fake *fake = fake_http();
    struct ask a = post_to(fake_url(fake), LONG_NS);
    client_send(client, &a.call);
    turn_until(&a.over);
    assert_int_equal(a.call.status, 200);
    fake_free(fake);
    unsetenv("http_proxy");
    unsetenv("ALL_PROXY");
}

static void a_cancelled_call_is_never_heard_of_again(void **state)
{
    (void)state;
    struct fake *fake = fake_http();
    struct ask gone = post_to(fake_url(fake), LONG_NS), refused = post_to("http://example.com/", LONG_NS),
               stays = post_to(fake_url(fake), LONG_NS);
    client_send(client, &gone.call);
    client_send(client, &refused.call);
    client_send(client, &stays.call);
    client_cancel(client, &gone.call);
    client_cancel(client, &refused.call);
    client_cancel(client, &refused.call);
    turn_until(&stays.over);
    assert_int_equal(gone.times + refused.times, 0);
    fake_free(fake);
}

static void many_calls_are_under_way_at_once(void **state)
{
    (void)state;
    enum { MANY = 200 };
    static const struct fake_step slow = {FAKE_ANSWER, 200, NULL, 50};
    struct fake *fake = fake_http();
    fake_script(fake, &slow, 1);
    struct ask *all = calloc(MANY, sizeof *all);
    assert_non_null(all);
    for (size_t i = 0; i < MANY; i++) {
        all[i] = post_to(fake_url(fake), LONG_NS);
        client_send(client, &all[i].call);
    }
    for (size_t i = 0; i < MANY; i++) {
        turn_until(&all[i].over);
        assert_int_equal(all[i].call.status, 200);
    }
    assert_int_equal(fake_count(fake), MANY);
    free(all);
    fake_free(fake);
}

static void *wake(void *context)
{
    client_wake(context);
    return NULL;
}

static void a_wake_up_from_another_thread_ends_the_waiting(void **state)
{
    (void)state;
    int64_t least_ns = INT64_MAX;
    for (int i = 0; i < 10; i++) {
        pthread_t thread;
        int64_t from_ns = clock_ns();
        pthread_create(&thread, NULL, wake, client);
        client_turn(client, from_ns + LONG_NS);
        pthread_join(thread, NULL);
        if (clock_ns() - from_ns < least_ns)
            least_ns = clock_ns() - from_ns;
    }
    assert_true(least_ns < NS_PER_S / 2); /* without the wake-up a turn takes a second */
}

static struct ask mail_to(const char *url)
{
    return (struct ask){.call = {.url = url,
                                 .sender = "reclaim@example.com",
                                 .recipient = "uma@example.com",
                                 .body = STR("Subject: x\r\n\r\n.a line that begins with a dot\r\n"),
                                 .limit_ns = LONG_NS,
                                 .done = done}};
}

static void smtp_delivers_and_refusals_are_answers(void **state)
{
    (void)state;
    static const struct {
        struct fake_step step;
        enum err err;
        int status;
    } ways[] = {
        {{FAKE_ANSWER, 250, NULL, 0}, OK, 250},   {{FAKE_ANSWER, 450, "RCPT", 0}, OK, 450},
        {{FAKE_ANSWER, 550, "RCPT", 0}, OK, 550}, {{FAKE_ANSWER, 451, ".", 0}, OK, 451},
        {{FAKE_ANSWER, 554, "DATA", 0}, OK, 554}, {{FAKE_CLOSE, 0, NULL, 0}, ERR_CLOSED, 0},
    };
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        struct fake *fake = fake_smtp();
        fake_script(fake, &ways[i].step, 1);
        struct ask a = mail_to(fake_url(fake));
        client_send(client, &a.call);
        turn_until(&a.over);
        assert_int_equal(a.call.err, ways[i].err);
        if (ways[i].status)
            assert_int_equal(a.call.status, ways[i].status);
        if (i == 0)
            assert_string_equal(fake_request(fake, 0), "Subject: x\r\n\r\n.a line that begins with a dot\r\n");
        fake_free(fake);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_post_arrives_whole_and_its_answer_comes_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_way_a_server_can_fail_has_its_name, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_call_is_sent_once_however_it_ends, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_server_that_is_not_there_is_closed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_answer_that_trickles_ends_with_its_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(addresses_that_may_not_be_asked_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(proxies_of_the_environment_are_ignored, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_cancelled_call_is_never_heard_of_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(many_calls_are_under_way_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_wake_up_from_another_thread_ends_the_waiting, set_up, tear_down),
        cmocka_unit_test_setup_teardown(smtp_delivers_and_refusals_are_answers, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
