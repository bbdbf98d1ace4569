/* The mails about a customer's changes say exactly this. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "customers/mails.h"

#define ID "e0000000-0000-4000-8000-000000000101"
#define DATE "18 March 2026, 12:00 UTC"
#define REFERENCE "Reference: " ID "\r\n"

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
    struct mail mail;
    customer_mail_write(CUSTOMER_MAIL_FROZEN, ID, DATE, false, &mail);
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
    struct mail mail;
    customer_mail_write(CUSTOMER_MAIL_RECOVERED, ID, "", false, &mail);
    assert_mail(&mail, "Your account is active again",
                "Your account was recovered. It works as before, and nothing in it was lost.\r\n\r\n"
                "If it was not you who recovered it, change your password.\r\n\r\n" REFERENCE);
}

static void a_reminder_says_when_the_account_ends(void **state)
{
    (void)state;
    struct mail mail;
    customer_mail_write(CUSTOMER_MAIL_REMINDER, ID, DATE, false, &mail);
    assert_mail(&mail, "Your account will soon be gone",
                "On " DATE " your account and everything in it will be deleted for good.\r\n\r\n"
                "If you want to keep it, sign in before then and recover it; everything is still there. If not, there "
                "is nothing to do.\r\n\r\n" REFERENCE);
}

static void the_last_mail_says_that_the_address_is_kept_no_longer(void **state)
{
    (void)state;
    struct mail mail;
    customer_mail_write(CUSTOMER_MAIL_DELETED, ID, "", false, &mail);
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
            struct mail mail;
            customer_mail_write(all[i], ID, DATE, by_admin, &mail);
            const char *text = buf_str(&mail.text).at;
            assert_non_null(strstr(text, DATE));
            assert_null(strchr(text, '{'));
            assert_int_equal(strstr(text, "An administrator froze it") != NULL, by_admin);
            assert_int_equal(strstr(text, "ign in before") != NULL, !by_admin);
            mail_free(&mail);
        }
}

static void a_date_that_moved_is_told(void **state)
{
    (void)state;
    struct mail mail;
    customer_mail_write(CUSTOMER_MAIL_MOVED, ID, DATE, false, &mail);
    assert_mail(&mail, "Your account has a new deletion date",
                "The deletion of your account had to wait. It has a new date: on " DATE
                " your account and everything in it will be deleted for good.\r\n\r\n"
                "If you want to keep it, sign in before then and recover it; everything is still there. If not, there "
                "is nothing to do.\r\n\r\n" REFERENCE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(after_an_administrators_freeze_no_mail_promises_that_signing_in_helps),
        cmocka_unit_test(a_date_that_moved_is_told),
        cmocka_unit_test(a_freeze_says_until_when_the_account_can_be_recovered),
        cmocka_unit_test(a_recovery_says_that_nothing_was_lost),
        cmocka_unit_test(a_reminder_says_when_the_account_ends),
        cmocka_unit_test(the_last_mail_says_that_the_address_is_kept_no_longer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
