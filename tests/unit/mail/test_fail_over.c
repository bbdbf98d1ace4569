/* Fail-over: one try a provider while someone waits for the answer, three afterwards; then a dead letter. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "database.h"
#include "fake.h"
#include "office.h"

#define LATER (clock_ns() + 60 * NS_PER_S)
#define LEFT "SELECT count(*) FROM reclaim.work_items"
#define DEAD "SELECT count(*) FROM reclaim.work_items WHERE state = 'dead'"

static struct fake *first, *second;
static struct mail_settings settings;

static int fresh(void **state)
{
    (void)state;
    database_run("TRUNCATE reclaim.work_items, reclaim.mailbox");
    first = fake_http();
    second = fake_http();
    settings = office_settings();
    settings.resend_api_key = "re_key";
    settings.resend_url = fake_url(first);
    settings.sendgrid_api_key = "SG.key";
    settings.sendgrid_url = fake_url(second);
    return 0;
}

static int clear(void **state)
{
    (void)state;
    fake_free(first);
    fake_free(second);
    return 0;
}

static int send_one(int64_t due_ns)
{
    struct office o = office_open(&settings, 0);
    struct mail mail = office_mail();
    struct waiting w = {0};
    office_send(&o, &mail, &w, due_ns);
    int verdict = office_result(&w);
    database_await("SELECT count(*) FROM reclaim.work_items WHERE state = 'open'", 0);
    assert_int_equal(atomic_load(&w.times), 1);
    office_close(&o, NS_PER_S);
    return verdict;
}

static void whoever_takes_the_mail_first_has_it_alone(void **state)
{
    (void)state;
    assert_int_equal(send_one(LATER), MAIL_DELIVERED);
    assert_int_equal(fake_count(first), 1);
    assert_int_equal(fake_count(second), 0);
    assert_int_equal(database_number(LEFT), 0);
}

static void however_the_first_provider_fails_the_second_is_asked_before_the_answer_is_due(void **state)
{
    static const struct fake_step ways[] = {
        {FAKE_ANSWER, 500, NULL, 0}, {FAKE_ANSWER, 503, NULL, 0}, {FAKE_ANSWER, 429, NULL, 0},
        {FAKE_ANSWER, 408, NULL, 0}, {FAKE_ANSWER, 400, NULL, 0}, {FAKE_ANSWER, 401, "x", 0},
        {FAKE_ANSWER, 302, NULL, 0}, {FAKE_CLOSE, 0, NULL, 0},    {FAKE_CUT, 200, NULL, 0},
        {FAKE_NO_HTTP, 0, NULL, 0},
    };
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        fake_script(first, &ways[i], 1);
        assert_int_equal(send_one(LATER), MAIL_DELIVERED);
        assert_int_equal(fake_count(first), 1);
        assert_int_equal(fake_count(second), 1);
        clear(state);
        fresh(state);
    }
}

static void nonsense_with_a_2xx_is_a_delivery(void **state)
{
    static const struct fake_step ways[] = {
        {FAKE_ANSWER, 202, "<html>\x01 not json", 0}, {FAKE_ANSWER, 200, "", 0}, {FAKE_HUGE, 200, NULL, 0}};
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        fake_script(first, &ways[i], 1);
        assert_int_equal(send_one(LATER), MAIL_DELIVERED);
        assert_int_equal(fake_count(second), 0);
        clear(state);
        fresh(state);
    }
}

static void all_refusing_before_the_answer_is_due_ends_the_delivery(void **state)
{
    (void)state;
    static const struct fake_step broken[] = {{FAKE_ANSWER, 500, NULL, 0}}, closed[] = {{FAKE_CLOSE, 0, NULL, 0}};
    fake_script(first, broken, 1);
    fake_script(second, closed, 1);
    assert_int_equal(send_one(LATER), MAIL_REFUSED);
    assert_int_equal(fake_count(first), 1);
    assert_int_equal(fake_count(second), 1);
    assert_int_equal(database_number(LEFT), 0);
}

static void without_a_provider_every_one_of_them_has_refused(void **state)
{
    (void)state;
    settings.resend_api_key = settings.sendgrid_api_key = NULL;
    assert_int_equal(send_one(LATER), MAIL_REFUSED);
    assert_int_equal(database_number(LEFT), 0);
}

static void the_answer_does_not_wait_past_its_instant_and_delivery_goes_on(void **state)
{
    (void)state;
    static const struct fake_step silent[] = {{FAKE_SILENT, 0, NULL, 0}};
    fake_script(first, silent, 1);
    settings.try_ns = NS_PER_S / 2;
    struct office o = office_open(&settings, 0);
    struct mail mail = office_mail();
    struct waiting w = {0};
    int64_t due_ns = clock_ns() + NS_PER_S / 10;
    office_send(&o, &mail, &w, due_ns);
    assert_int_equal(office_result(&w), MAIL_PENDING);
    assert_true(atomic_load(&w.when_ns) >= due_ns);
    assert_int_equal(fake_count(second), 0); /* the first try still runs */
    database_await(LEFT, 0);
    assert_int_equal(fake_count(first), 3);
    assert_int_equal(fake_count(second), 1);
    assert_int_equal(atomic_load(&w.times), 1);
    office_close(&o, NS_PER_S);
}

static void after_the_answer_a_provider_has_three_tries_with_growing_pauses(void **state)
{
    (void)state;
    static const struct fake_step broken[] = {{FAKE_ANSWER, 500, NULL, 0}}, third_time[] = {{FAKE_ANSWER, 429, NULL, 0},
                                                                                            {FAKE_CLOSE, 0, NULL, 0},
                                                                                            {FAKE_ANSWER, 202, "", 0}};
    fake_script(first, broken, 1);
    fake_script(second, third_time, 3);
    assert_int_equal(send_one(0), MAIL_PENDING);
    assert_int_equal(fake_count(first), 3);
    assert_int_equal(fake_count(second), 3);
    struct fake *both[] = {first, second};
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        assert_true(fake_when_ns(both[i], 1) - fake_when_ns(both[i], 0) >= settings.pause_ns);
        assert_true(fake_when_ns(both[i], 2) - fake_when_ns(both[i], 1) >= 2 * settings.pause_ns);
    }
    assert_true(fake_when_ns(second, 0) >= fake_when_ns(first, 2));
}

/* The success is ready at once, and can be replaced until the time that the caller gives. */
static void send_revocably(struct waiting *w)
{
    struct office o = office_open(&settings, 0);
    struct mail mail = office_mail();
    office_send(&o, &mail, w, 0);
    assert_int_equal(office_result(w), MAIL_PENDING);
    database_await("SELECT count(*) FROM reclaim.work_items WHERE state = 'open'", 0);
    office_close(&o, NS_PER_S);
    assert_int_equal(atomic_load(&w->times), 1);
    assert_int_equal(atomic_load(&w->kept) + atomic_load(&w->revoked), 1);
}

static void a_success_that_has_not_left_is_revoked_when_all_refuse(void **state)
{
    (void)state;
    static const struct fake_step broken[] = {{FAKE_ANSWER, 500, NULL, 0}};
    fake_script(first, broken, 1);
    fake_script(second, broken, 1);
    struct waiting w = {.revocable_until_ns = LATER};
    send_revocably(&w);
    assert_int_equal(atomic_load(&w.revoked), 1);
    assert_int_equal(fake_count(first), 1);
    assert_int_equal(fake_count(second), 1);
    assert_int_equal(database_number(LEFT), 0);
}

static void a_success_that_has_left_stands_and_delivery_goes_on(void **state)
{
    (void)state;
    static const struct fake_step broken[] = {{FAKE_ANSWER, 500, NULL, 0}};
    fake_script(first, broken, 1);
    fake_script(second, broken, 1);
    settings.pause_ns = NS_PER_S / 100;
    struct waiting w = {.revocable_until_ns = LATER, .released = true};
    send_revocably(&w);
    assert_int_equal(fake_count(first), 3);
    assert_int_equal(fake_count(second), 3);
    assert_int_equal(database_number(DEAD), 1);
}

static void a_mail_that_is_taken_keeps_its_success(void **state)
{
    (void)state;
    static const struct fake_step broken[] = {{FAKE_ANSWER, 500, NULL, 0}};
    fake_script(first, broken, 1);
    struct waiting w = {.revocable_until_ns = LATER};
    send_revocably(&w);
    assert_int_equal(atomic_load(&w.kept), 1);
    assert_int_equal(fake_count(first), 1);
    assert_int_equal(fake_count(second), 1);
}

static void when_the_instant_comes_first_each_provider_gets_its_other_tries(void **state)
{
    (void)state;
    static const struct fake_step broken[] = {{FAKE_ANSWER, 500, NULL, 0}};
    fake_script(first, broken, 1);
    fake_script(second, broken, 1);
    settings.pause_ns = NS_PER_S / 100;
    struct waiting w = {.revocable_until_ns = clock_ns()};
    send_revocably(&w);
    assert_int_equal(atomic_load(&w.kept), 1);
    assert_int_equal(fake_count(first), 3);
    assert_int_equal(fake_count(second), 3);
}

static void a_4xx_is_the_last_word_of_a_provider(void **state)
{
    (void)state;
    static const struct fake_step no[] = {{FAKE_ANSWER, 422, NULL, 0}};
    fake_script(first, no, 1);
    assert_int_equal(send_one(0), MAIL_PENDING);
    assert_int_equal(fake_count(first), 1);
    assert_int_equal(fake_count(second), 1);
    assert_int_equal(database_number(LEFT), 0);
}

static void a_provider_passed_over_in_haste_gets_its_other_tries_later(void **state)
{
    (void)state;
    static const struct fake_step then_fine[] = {{FAKE_ANSWER, 500, NULL, 0}, {FAKE_ANSWER, 200, NULL, 0}},
                                  silent[] = {{FAKE_SILENT, 0, NULL, 0}};
    fake_script(first, then_fine, 2);
    fake_script(second, silent, 1);
    settings.try_ns = 2 * NS_PER_S;
    assert_int_equal(send_one(clock_ns() + 3 * NS_PER_S / 2), MAIL_PENDING);
    assert_int_equal(fake_count(second), 3);
    assert_int_equal(fake_count(first), 2);
    assert_int_equal(database_number(LEFT), 0);
}

static void when_all_tries_are_used_up_a_dead_letter_without_anything_personal_stays(void **state)
{
    (void)state;
    static const struct fake_step broken[] = {{FAKE_ANSWER, 500, NULL, 0}}, no[] = {{FAKE_ANSWER, 403, NULL, 0}};
    fake_script(first, broken, 1);
    fake_script(second, no, 1);
    assert_int_equal(send_one(0), MAIL_PENDING);
    assert_int_equal(fake_count(first), 3);
    assert_int_equal(fake_count(second), 1);
    assert_int_equal(database_number(DEAD), 1);
    assert_int_equal(database_number("SELECT count(*) FROM reclaim.work_items w WHERE w::text ILIKE '%uma%'"
                                     " OR w::text LIKE '%QWXZ%' OR w::text LIKE '%example%'"),
                     0);
    assert_int_equal(database_number("SELECT count(*) FROM reclaim.work_items WHERE last_error <> ''"), 1);
}

static void each_copy_a_provider_sees_has_the_same_key(void **state)
{
    (void)state;
    static const struct fake_step twice[] = {{FAKE_CUT, 200, NULL, 0}, {FAKE_ANSWER, 200, NULL, 0}};
    fake_script(first, twice, 2);
    settings.sendgrid_api_key = NULL;
    assert_int_equal(send_one(0), MAIL_PENDING);
    assert_int_equal(fake_count(first), 2);
    const char *a = strstr(fake_request(first, 0), "Idempotency-Key: "),
               *b = strstr(fake_request(first, 1), "Idempotency-Key: ");
    assert_non_null(a);
    assert_non_null(b);
    assert_memory_equal(a, b, 17 + 32);
    assert_string_equal(strstr(fake_request(first, 0), "\r\n\r\n"), strstr(fake_request(first, 1), "\r\n\r\n"));
}

static void five_hundred_mails_at_once_arrive_once_each(void **state)
{
    (void)state;
    enum { MANY = 500 };
    static const struct fake_step slow[] = {{FAKE_ANSWER, 200, NULL, 30}};
    fake_script(first, slow, 1);
    struct office o = office_open(&settings, 0);
    struct waiting *all = calloc(MANY, sizeof *all);
    assert_non_null(all);
    for (int i = 0; i < MANY; i++) {
        struct mail mail = office_mail();
        office_send(&o, &mail, &all[i], LATER);
    }
    for (int i = 0; i < MANY; i++)
        assert_int_equal(office_result(&all[i]), MAIL_DELIVERED);
    database_await(LEFT, 0);
    assert_int_equal(fake_count(first), MANY);
    office_close(&o, NS_PER_S);
    free(all);
}

static int make(void **state)
{
    (void)state;
    database_make("fail_over");
    return 0;
}

static int drop(void **state)
{
    (void)state;
    database_drop();
    return 0;
}

int main(void)
{
    log_threshold(LOG_ERROR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(whoever_takes_the_mail_first_has_it_alone, fresh, clear),
        cmocka_unit_test_setup_teardown(however_the_first_provider_fails_the_second_is_asked_before_the_answer_is_due,
                                        fresh, clear),
        cmocka_unit_test_setup_teardown(nonsense_with_a_2xx_is_a_delivery, fresh, clear),
        cmocka_unit_test_setup_teardown(all_refusing_before_the_answer_is_due_ends_the_delivery, fresh, clear),
        cmocka_unit_test_setup_teardown(without_a_provider_every_one_of_them_has_refused, fresh, clear),
        cmocka_unit_test_setup_teardown(the_answer_does_not_wait_past_its_instant_and_delivery_goes_on, fresh, clear),
        cmocka_unit_test_setup_teardown(after_the_answer_a_provider_has_three_tries_with_growing_pauses, fresh, clear),
        cmocka_unit_test_setup_teardown(a_success_that_has_not_left_is_revoked_when_all_refuse, fresh, clear),
        cmocka_unit_test_setup_teardown(a_success_that_has_left_stands_and_delivery_goes_on, fresh, clear),
        cmocka_unit_test_setup_teardown(a_mail_that_is_taken_keeps_its_success, fresh, clear),
        cmocka_unit_test_setup_teardown(when_the_instant_comes_first_each_provider_gets_its_other_tries, fresh, clear),
        cmocka_unit_test_setup_teardown(a_4xx_is_the_last_word_of_a_provider, fresh, clear),
        cmocka_unit_test_setup_teardown(a_provider_passed_over_in_haste_gets_its_other_tries_later, fresh, clear),
        cmocka_unit_test_setup_teardown(when_all_tries_are_used_up_a_dead_letter_without_anything_personal_stays, fresh,
                                        clear),
        cmocka_unit_test_setup_teardown(each_copy_a_provider_sees_has_the_same_key, fresh, clear),
        cmocka_unit_test_setup_teardown(five_hundred_mails_at_once_arrive_once_each, fresh, clear),
    };
    return cmocka_run_group_tests(tests, make, drop);
}
