/* Delivery: what each provider gets, what survives a crash, and that nothing personal is left behind. */
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "database.h"
#include "fake.h"
#include "office.h"

#define LATER (clock_ns() + 60 * NS_PER_S)
#define LEFT "SELECT count(*) FROM reclaim.work_items"
#define TAKE_OVER                                                                                                      \
    "INSERT INTO reclaim.work_items (kind, payload, tries, leased_by, leased_until)"                                   \
    " VALUES ('mail', '" PAYLOAD "', 1, 5, now())"

static struct fake *provider;
static struct mail_settings settings;

static int fresh(void **state)
{
    (void)state;
    database_run("TRUNCATE reclaim.work_items, reclaim.mailbox");
    provider = fake_http();
    settings = office_settings();
    return 0;
}

static int clear(void **state)
{
    (void)state;
    fake_free(provider);
    return 0;
}

static void use_resend(void)
{
    settings.resend_api_key = "re_key";
    settings.resend_url = fake_url(provider);
}

static int send_one(void)
{
    struct office o = office_open(&settings, 0);
    struct mail mail = office_mail();
    struct waiting w = {0};
    office_send(&o, &mail, &w, LATER);
    int verdict = office_result(&w);
    database_await("SELECT count(*) FROM reclaim.work_items WHERE state = 'open'", 0);
    office_close(&o, NS_PER_S);
    return verdict;
}

static json_t *sent_json(void)
{
    struct why why;
    json_t *root = json_read_object(str_of(strstr(fake_request(provider, 0), "\r\n\r\n") + 4), &why);
    assert_non_null(root);
    return root;
}

static void assert_holds(const json_t *object, const char *key, const char *text)
{
    struct str value;
    assert_int_equal(json_get_str(object, key, &value), OK);
    assert_non_null(strstr(value.at, text));
}

static void every_statement_fits_the_schema(void **state)
{
    (void)state;
    database_check(mail_statements, mail_statement_count);
}

static void resend_gets_its_json(void **state)
{
    (void)state;
    use_resend();
    assert_int_equal(send_one(), MAIL_DELIVERED);
    assert_non_null(strstr(fake_request(provider, 0), "Authorization: Bearer re_key\r\n"));
    assert_non_null(strstr(fake_request(provider, 0), "Content-Type: application/json\r\n"));
    assert_non_null(strstr(fake_request(provider, 0), "Idempotency-Key: "));
    AUTO(json) json_t *sent = sent_json();
    assert_holds(sent, "from", "Reclaim <reclaim@example.com>");
    assert_string_equal(json_string_value(json_array_get(json_object_get(sent, "to"), 0)), ADDRESS);
    assert_holds(sent, "subject", "code");
    assert_holds(sent, "text", CODE);
    assert_holds(sent, "html", CODE);
    assert_holds(json_object_get(sent, "headers"), "X-Entity-Ref-ID", REFERENCE);
}

static void sendgrid_gets_its_json(void **state)
{
    (void)state;
    settings.sendgrid_api_key = "SG.key";
    settings.sendgrid_url = fake_url(provider);
    assert_int_equal(send_one(), MAIL_DELIVERED);
    assert_non_null(strstr(fake_request(provider, 0), "Authorization: Bearer SG.key\r\n"));
    assert_null(strstr(fake_request(provider, 0), "Idempotency-Key"));
    AUTO(json) json_t *sent = sent_json();
    const json_t *person =
        json_array_get(json_object_get(json_array_get(json_object_get(sent, "personalizations"), 0), "to"), 0);
    assert_holds(person, "email", ADDRESS);
    assert_holds(json_object_get(sent, "from"), "email", "reclaim@example.com");
    assert_holds(json_object_get(sent, "from"), "name", "Reclaim");
    const json_t *content = json_object_get(sent, "content");
    assert_holds(json_array_get(content, 0), "type", "text/plain");
    assert_holds(json_array_get(content, 0), "value", CODE);
    assert_holds(json_array_get(content, 1), "type", "text/html");
    assert_holds(json_array_get(content, 1), "value", CODE);
    assert_false(json_boolean_value(
        json_object_get(json_object_get(json_object_get(sent, "tracking_settings"), "click_tracking"), "enable")));
}

static void a_mail_server_gets_a_message(void **state)
{
    (void)state;
    struct fake *smtp = fake_smtp();
    settings.smtp_url = fake_url(smtp);
    assert_int_equal(send_one(), MAIL_DELIVERED);
    const char *message = fake_request(smtp, 0);
    assert_non_null(strstr(message, "From: Reclaim <reclaim@example.com>\r\n"));
    assert_non_null(strstr(message, "To: " ADDRESS "\r\n"));
    assert_non_null(strstr(message, CODE));
    fake_free(smtp);
}

static void a_mail_server_s_4xx_may_pass_and_its_5xx_does_not(void **state)
{
    (void)state;
    static const struct fake_step busy[] = {{FAKE_ANSWER, 451, "RCPT", 0},
                                            {FAKE_CLOSE, 0, NULL, 0},
                                            {FAKE_ANSWER, 250, NULL, 0}},
                                  no[] = {{FAKE_ANSWER, 550, "RCPT", 0}};
    struct fake *smtp = fake_smtp();
    settings.smtp_url = fake_url(smtp);
    fake_script(smtp, busy, 3);
    struct office o = office_open(&settings, 0);
    struct mail mail = office_mail();
    office_send(&o, &mail, NULL, 0);
    database_await(LEFT, 0);
    assert_int_equal(fake_count(smtp), 3);
    fake_script(smtp, no, 1);
    mail = office_mail();
    office_send(&o, &mail, NULL, 0);
    database_await("SELECT count(*) FROM reclaim.work_items WHERE state = 'dead'", 1);
    assert_int_equal(fake_count(smtp), 4);
    office_close(&o, NS_PER_S);
    fake_free(smtp);
}

static void the_mailbox_keeps_the_newest_two_hundred(void **state)
{
    (void)state;
    settings.from = NULL;
    settings.mailbox = true;
    struct office o = office_open(&settings, 0);
    struct waiting *all = calloc(250, sizeof *all);
    assert_non_null(all);
    for (int i = 0; i < 250; i++) {
        struct mail mail = office_mail();
        snprintf(mail.to, sizeof mail.to, "u%d@example.com", i);
        office_send(&o, &mail, &all[i], LATER);
    }
    for (int i = 0; i < 250; i++)
        assert_int_equal(office_result(&all[i]), MAIL_DELIVERED);
    free(all);
    database_await(LEFT, 0);
    office_close(&o, NS_PER_S);
    assert_int_equal(database_number("SELECT count(*) FROM reclaim.mailbox"), 200);
    assert_int_equal(database_number("SELECT count(*) FROM reclaim.mailbox WHERE recipient = 'u249@example.com' AND"
                                     " body_text LIKE '%" CODE "%' AND body_html LIKE '%" CODE "%' AND subject <> ''"),
                     1);
}

static void a_provider_keeps_the_mailbox_empty(void **state)
{
    (void)state;
    use_resend();
    settings.mailbox = true;
    assert_int_equal(send_one(), MAIL_DELIVERED);
    assert_int_equal(database_number("SELECT count(*) FROM reclaim.mailbox"), 0);
}

static void an_item_taken_over_is_composed_anew_and_sent(void **state)
{
    (void)state;
    use_resend();
    database_run(TAKE_OVER);
    struct office o = office_open(&settings, 0);
    database_await(LEFT, 0);
    office_close(&o, NS_PER_S);
    assert_int_equal(fake_count(provider), 1);
    AUTO(json) json_t *sent = sent_json();
    assert_holds(sent, "text", CODE);
}

static void what_nobody_needs_any_more_is_not_sent(void **state)
{
    (void)state;
    atomic_int answer = ERR_MISSING;
    settings.features[0].context = &answer;
    use_resend();
    database_run(TAKE_OVER);
    struct office o = office_open(&settings, 0);
    database_await(LEFT, 0);
    office_close(&o, NS_PER_S);
    assert_int_equal(fake_count(provider), 0);
}

static void what_cannot_be_composed_yet_is_tried_again_and_nonsense_is_buried(void **state)
{
    (void)state;
    atomic_int answer = ERR_DATABASE;
    settings.features[0].context = &answer;
    use_resend();
    database_run(TAKE_OVER);
    struct office o = office_open(&settings, 0);
    database_await("SELECT count(*) FROM reclaim.work_items WHERE last_error IS NOT NULL AND tries = 2", 1);
    atomic_store(&answer, OK);
    database_await(LEFT, 0);
    assert_int_equal(fake_count(provider), 1);
    database_run("INSERT INTO reclaim.work_items (kind, payload) VALUES ('mail', '{\"salt\": 5}')");
    database_await("SELECT count(*) FROM reclaim.work_items WHERE state = 'dead'", 1);
    office_close(&o, NS_PER_S);
}

static void an_expired_code_is_not_sent(void **state)
{
    (void)state;
    use_resend();
    struct office o = office_open(&settings, 0);
    struct mail mail = office_mail();
    mail.expires_us = clock_wall_us() - 1;
    office_send(&o, &mail, NULL, 0);
    database_await(LEFT, 0);
    office_close(&o, NS_PER_S);
    assert_int_equal(fake_count(provider), 0);
}

static void an_address_that_could_break_a_command_is_not_mailed_to(void **state)
{
    (void)state;
    use_resend();
    struct office o = office_open(&settings, 0);
    struct mail mail = office_mail();
    snprintf(mail.to, sizeof mail.to, "a@example.com>\r\nRCPT TO:<b@example.com");
    struct waiting w = {0};
    office_send(&o, &mail, &w, LATER);
    assert_int_equal(office_result(&w), MAIL_REFUSED);
    office_close(&o, NS_PER_S);
    assert_int_equal(fake_count(provider), 0);
}

static void stopping_in_the_middle_answers_and_gives_the_mail_back(void **state)
{
    (void)state;
    static const struct fake_step silent[] = {{FAKE_SILENT, 0, NULL, 0}};
    fake_script(provider, silent, 1);
    use_resend();
    struct office o = office_open(&settings, 0);
    struct mail mail = office_mail();
    struct waiting w = {0};
    office_send(&o, &mail, &w, LATER);
    while (fake_count(provider) == 0)
        (void)poll(NULL, 0, 5);
    office_close(&o, 0);
    assert_int_equal(atomic_load(&w.times), 1);
    assert_int_equal(atomic_load(&w.result), MAIL_PENDING);
    assert_int_equal(database_number("SELECT count(*) FROM reclaim.work_items WHERE leased_until IS NULL"), 1);
}

static void a_mail_handed_over_too_late_is_answered_all_the_same(void **state)
{
    (void)state;
    use_resend();
    struct office o = office_open(&settings, 0);
    work_stop(o.engine, clock_ns());
    struct mail mail = office_mail();
    struct waiting w = {0};
    office_send(&o, &mail, &w, LATER);
    assert_int_equal(atomic_load(&w.result), MAIL_PENDING);
    pool_stop(o.pool, LATER);
    work_free(o.engine);
    post_free(o.post);
    pg_free(o.pg);
    assert_int_equal(database_number(LEFT), 1);
}

static void a_mail_promised_by_a_process_that_is_killed_arrives(void **state)
{
    (void)state;
    static const struct fake_step silent_then_fine[] = {{FAKE_SILENT, 0, NULL, 0}, {FAKE_ANSWER, 200, NULL, 0}};
    fake_script(provider, silent_then_fine, 2);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execl("/proc/self/exe", "test_delivery", "promise", database_url(), fake_url(provider), NULL);
        _exit(127);
    }
    while (fake_count(provider) == 0)
        (void)poll(NULL, 0, 5);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_int_equal(database_number(LEFT), 1);
    use_resend();
    settings.try_ns = NS_PER_S;
    struct office o = office_open(&settings, 4 * NS_PER_S);
    database_await(LEFT, 0);
    office_close(&o, NS_PER_S);
    assert_int_equal(fake_count(provider), 2);
    const char *a = strstr(fake_request(provider, 0), "Idempotency-Key: "),
               *b = strstr(fake_request(provider, 1), "Idempotency-Key: ");
    assert_memory_equal(a, b, 17 + 32); /* the same mail, so the provider can tell */
    assert_non_null(strstr(fake_request(provider, 1), CODE));
}

static void promise_and_wait(const char *url, const char *resend)
{
    struct mail_settings s = office_settings();
    database_use(url);
    s.resend_api_key = "re_key";
    s.resend_url = resend;
    s.try_ns = 2 * NS_PER_S;
    struct office o = office_open(&s, 4 * NS_PER_S);
    struct mail mail = office_mail();
    office_send(&o, &mail, NULL, 0);
    for (;;)
        (void)poll(NULL, 0, 1000);
}

static void nothing_personal_is_ever_logged(void **state)
{
    (void)state;
    static const struct fake_step echo[] = {{FAKE_ANSWER, 422, "no such address: " ADDRESS " " CODE, 0}};
    char path[] = "/tmp/reclaim-log.XXXXXX", text[65536];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    unlink(path);
    log_to_fd(fd);
    log_threshold(LOG_DEBUG);
    fake_script(provider, echo, 1);
    use_resend();
    settings.smtp_url = "smtp://user:hunter2@127.0.0.1:1";
    struct office o = office_open(&settings, 0);
    struct mail mail = office_mail();
    office_send(&o, &mail, NULL, 0);
    database_await("SELECT count(*) FROM reclaim.work_items WHERE state = 'dead'", 1);
    office_close(&o, NS_PER_S);
    log_threshold(LOG_ERROR);
    log_to_fd(2);
    ssize_t len = pread(fd, text, sizeof text - 1, 0);
    assert_true(len > 0);
    text[len] = '\0';
    close(fd);
    assert_non_null(strstr(text, "mail try failed"));
    assert_non_null(strstr(text, REFERENCE));
    assert_null(strcasestr(text, "uma.secret"));
    assert_null(strstr(text, "QWXZ"));
    assert_null(strstr(text, "re_key"));
    assert_null(strstr(text, "hunter2"));
}

static void settings_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    struct mail_settings wrong[5];
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        wrong[i] = office_settings();
        wrong[i].resend_api_key = "re_key";
        wrong[i].resend_url = "https://api.example.com/emails";
    }
    wrong[0].from = NULL;
    wrong[1].from = "Reclaim\r\nBcc: b@example.com <a@example.com>";
    wrong[2].resend_url = "http://api.example.com/emails";
    wrong[3].resend_api_key = "re_key\r\nX-Injected: yes";
    wrong[4].smtp_url = "https://mail.example.com";
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct post *post;
        struct why why = {""};
        assert_int_equal(post_new(&wrong[i], &post, &why), ERR_INPUT);
        assert_int_not_equal(why.text[0], '\0');
        assert_null(strstr(why.text, "re_key"));
    }
}

static int make(void **state)
{
    (void)state;
    database_make("delivery");
    return 0;
}

static int drop(void **state)
{
    (void)state;
    database_drop();
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fresh, clear)

int main(int argc, char **argv)
{
    log_threshold(LOG_ERROR);
    if (argc == 4 && strcmp(argv[1], "promise") == 0)
        promise_and_wait(argv[2], argv[3]); /* to be killed */
    const struct CMUnitTest tests[] = {
        TEST(every_statement_fits_the_schema),
        TEST(resend_gets_its_json),
        TEST(sendgrid_gets_its_json),
        TEST(a_mail_server_gets_a_message),
        TEST(a_mail_server_s_4xx_may_pass_and_its_5xx_does_not),
        TEST(the_mailbox_keeps_the_newest_two_hundred),
        TEST(a_provider_keeps_the_mailbox_empty),
        TEST(an_item_taken_over_is_composed_anew_and_sent),
        TEST(what_nobody_needs_any_more_is_not_sent),
        TEST(what_cannot_be_composed_yet_is_tried_again_and_nonsense_is_buried),
        TEST(an_expired_code_is_not_sent),
        TEST(an_address_that_could_break_a_command_is_not_mailed_to),
        TEST(stopping_in_the_middle_answers_and_gives_the_mail_back),
        TEST(a_mail_handed_over_too_late_is_answered_all_the_same),
        TEST(a_mail_promised_by_a_process_that_is_killed_arrives),
        TEST(nothing_personal_is_ever_logged),
        TEST(settings_that_make_no_sense_are_refused),
    };
    return cmocka_run_group_tests(tests, make, drop);
}
