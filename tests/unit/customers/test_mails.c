/* The mails about a customer's changes say exactly this. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "../mail/test_design.h"
#include "customers/mails.h"

#define ID "e0000000-0000-4000-8000-000000000101"
#define DATE "18 March 2026, 12:00 UTC"
#define REFERENCE "Reference: " ID "\r\n"

static struct mail written(enum customer_mail kind, bool by_admin, enum language language, bool links)
{
    struct mail mail;
    customer_mail_write(test_design(links),
                        &(struct customer_letter){.kind = kind,
                                                  .customer_id = ID,
                                                  .language = language,
                                                  .when = STR("2026-03-18T12:00:00.000000Z"),
                                                  .by_admin = by_admin},
                        &mail);
    return mail;
}

static void assert_mail(struct mail *mail, const char *subject, const char *text)
{
    assert_string_equal(mail->subject, subject);
    assert_string_equal(buf_str(&mail->text).at, text);
    assert_non_null(buf_str(&mail->html).at);
    mail_free(mail);
}

static void a_freeze_says_until_when_the_account_can_be_recovered(void **state)
{
    (void)state;
    struct mail mail = written(CUSTOMER_MAIL_FROZEN, false, LANGUAGE_EN, false);
    assert_mail(&mail, "Your account will be deleted",
                "The deletion of your account was asked for. From now on it is frozen: it cannot be used, and costs "
                "nothing.\r\n\r\n"
                "It stays frozen until " DATE ". Then everything in it is deleted, and cannot be brought back.\r\n\r\n"
                "Changed your mind, or was it not you? Sign in before that day and recover the account; everything is "
                "still there.\r\n\r\n" REFERENCE);
}

static void a_recovery_says_that_nothing_was_lost(void **state)
{
    (void)state;
    struct mail mail = written(CUSTOMER_MAIL_RECOVERED, false, LANGUAGE_EN, false);
    assert_mail(&mail, "Your account is active again",
                "Your account was recovered. It works as before, and nothing in it was lost.\r\n\r\n"
                "If it was not you who recovered it, change your password.\r\n\r\n" REFERENCE);
}

static void a_reminder_says_when_the_account_ends(void **state)
{
    (void)state;
    struct mail mail = written(CUSTOMER_MAIL_REMINDER, false, LANGUAGE_EN, false);
    assert_mail(&mail, "Your account will soon be gone",
                "On " DATE " your account and everything in it will be deleted for good.\r\n\r\n"
                "If you want to keep it, sign in before then and recover it; everything is still there. If not, there "
                "is nothing to do.\r\n\r\n" REFERENCE);
}

static void the_last_mail_says_that_the_address_is_kept_no_longer(void **state)
{
    (void)state;
    struct mail mail = written(CUSTOMER_MAIL_DELETED, false, LANGUAGE_EN, false);
    assert_mail(&mail, "Your account was deleted",
                "Your account was deleted, and what was in it is being erased everywhere. It cannot be brought "
                "back.\r\n\r\n"
                "This is the last mail about it: your address was used once more to send it, and is kept no longer. "
                "You can register with it again.\r\n\r\n" REFERENCE);
}

static void after_an_administrators_freeze_no_mail_promises_that_signing_in_helps(void **state)
{
    (void)state;
    static const enum customer_mail all[] = {CUSTOMER_MAIL_FROZEN, CUSTOMER_MAIL_MOVED, CUSTOMER_MAIL_REMINDER};
    for (size_t i = 0; i < COUNT_OF(all); i++)
        for (int by_admin = 0; by_admin <= 1; by_admin++) {
            struct mail mail = written(all[i], by_admin, LANGUAGE_EN, true);
            const char *text = buf_str(&mail.text).at;
            assert_non_null(strstr(text, DATE));
            assert_null(strchr(text, '{'));
            assert_int_equal(strstr(text, "An administrator froze it") != NULL, by_admin);
            assert_int_equal(strstr(text, "ign in before") != NULL, !by_admin);
            assert_int_equal(strstr(text, "https://example.com/account\r\n") != NULL, !by_admin);
            mail_free(&mail);
        }
}

static void a_date_that_moved_is_told(void **state)
{
    (void)state;
    struct mail mail = written(CUSTOMER_MAIL_MOVED, false, LANGUAGE_EN, false);
    assert_mail(&mail, "Your account has a new deletion date",
                "The deletion of your account had to wait. It has a new date: on " DATE
                " your account and everything in it will be deleted for good.\r\n\r\n"
                "If you want to keep it, sign in before then and recover it; everything is still there. If not, there "
                "is nothing to do.\r\n\r\n" REFERENCE);
}

static void each_mail_speaks_german_to_who_reads_it(void **state)
{
    (void)state;
    for (enum customer_mail kind = CUSTOMER_MAIL_FROZEN; kind <= CUSTOMER_MAIL_DELETED; kind++) {
        struct mail mail = written(kind, false, LANGUAGE_DE, true);
        assert_non_null(strstr(mail.subject, "Ihr Konto"));
        assert_null(strchr(buf_str(&mail.text).at, '{'));
        assert_null(strstr(mail.text.at, "account and"));
        assert_int_equal(strstr(mail.text.at, "18. M\xc3\xa4rz 2026, 12:00 UTC") != NULL,
                         kind != CUSTOMER_MAIL_RECOVERED && kind != CUSTOMER_MAIL_DELETED);
        assert_int_equal(strstr(buf_str(&mail.html).at, "href=\"https://example.com/account\"") != NULL,
                         kind != CUSTOMER_MAIL_DELETED);
        mail_free(&mail);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(after_an_administrators_freeze_no_mail_promises_that_signing_in_helps),
        cmocka_unit_test(each_mail_speaks_german_to_who_reads_it),
        cmocka_unit_test(a_date_that_moved_is_told),
        cmocka_unit_test(a_freeze_says_until_when_the_account_can_be_recovered),
        cmocka_unit_test(a_recovery_says_that_nothing_was_lost),
        cmocka_unit_test(a_reminder_says_when_the_account_ends),
        cmocka_unit_test(the_last_mail_says_that_the_address_is_kept_no_longer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
