/* What our mails say. Text and HTML say the same; neither holds anything from outside but what is escaped here. */
#include <stdio.h>

#include "mail/inside.h"

static void add_escaped(struct buf *out, const char *z)
{
    for (; *z; z++) {
        if (*z == '&')
            buf_addz(out, "&amp;");
        else if (*z == '<')
            buf_addz(out, "&lt;");
        else if (*z == '>')
            buf_addz(out, "&gt;");
        else if (*z == '"')
            buf_addz(out, "&quot;");
        else
            buf_add(out, (struct str){z, 1});
    }
}

static const char *minutes_word(int minutes)
{
    return minutes == 1 ? "minute" : "minutes";
}

static void word_code(const struct mail *m, struct wording *w)
{
    w->subject = "Your verification code";
    buf_addf(&w->text,
             "Your verification code is\r\n"
             "\r\n"
             "    %s\r\n"
             "\r\n"
             "It is valid for %d %s and works once. Enter it where you asked for it:\r\n"
             "the unfinished registration of this address is then removed, and you can\r\n"
             "register again.\r\n"
             "\r\n"
             "If it was not you who asked, ignore this mail: without the code nothing\r\n"
             "happens.\r\n"
             "\r\n"
             "Reference: %s\r\n",
             m->code, m->minutes, minutes_word(m->minutes), m->reference);

    buf_addz(&w->html,
             "<!doctype html>\r\n<html lang=\"en\">\r\n<head><meta charset=\"utf-8\"><title>Your verification "
             "code</title></head>\r\n<body style=\"font-family:sans-serif;font-size:16px;line-height:1.5;"
             "color:#222;background:#fff\">\r\n<p>Your verification code is</p>\r\n"
             "<p style=\"font-family:ui-monospace,Consolas,Menlo,monospace;font-size:32px;font-weight:bold;"
             "letter-spacing:3px;margin:24px 0\">");
    add_escaped(&w->html, m->code);
    buf_addf(&w->html,
             "</p>\r\n<p>It is valid for %d %s and works once. Enter it where you asked for it: the unfinished "
             "registration of this address is then removed, and you can register again.</p>\r\n"
             "<p>If it was not you who asked, ignore this mail: without the code nothing happens.</p>\r\n"
             "<p style=\"color:#666;font-size:13px\">Reference: ",
             m->minutes, minutes_word(m->minutes));
    add_escaped(&w->html, m->reference);
    buf_addz(&w->html, "</p>\r\n</body>\r\n</html>\r\n");
}

/* A mail of paragraphs: "" ends the list. */
static void word_plainly(struct wording *w, const char *subject, const char *const *paragraphs, const char *reference)
{
    w->subject = subject;
    buf_addf(&w->html,
             "<!doctype html>\r\n<html lang=\"en\">\r\n<head><meta charset=\"utf-8\"><title>%s</title></head>\r\n"
             "<body style=\"font-family:sans-serif;font-size:16px;line-height:1.5;color:#222;background:#fff\">\r\n",
             subject);
    for (; **paragraphs; paragraphs++) {
        buf_addf(&w->text, "%s\r\n\r\n", *paragraphs);
        buf_addz(&w->html, "<p>");
        add_escaped(&w->html, *paragraphs);
        buf_addz(&w->html, "</p>\r\n");
    }
    buf_addf(&w->text, "Reference: %s\r\n", reference);
    buf_addz(&w->html, "<p style=\"color:#666;font-size:13px\">Reference: ");
    add_escaped(&w->html, reference);
    buf_addz(&w->html, "</p>\r\n</body>\r\n</html>\r\n");
}

static void word_frozen(const struct mail *m, struct wording *w)
{
    char until[256];
    (void)snprintf(until, sizeof until,
                   "It stays frozen until %s. Then everything in it is deleted, and cannot be brought back.", m->when);
    word_plainly(
        w, "Your account will be deleted",
        (const char *const[]){"The deletion of your account was asked for. From now on it is frozen: it cannot "
                              "be used, and costs nothing.",
                              until,
                              "Changed your mind, or was it not you? Sign in before that day and recover the "
                              "account; everything is still there.",
                              ""},
        m->reference);
}

static void word_recovered(const struct mail *m, struct wording *w)
{
    word_plainly(w, "Your account is active again",
                 (const char *const[]){"Your account was recovered. It works as before, and nothing in it was lost.",
                                       "If it was not you who recovered it, change your password.", ""},
                 m->reference);
}

static void word_reminder(const struct mail *m, struct wording *w)
{
    char until[256];
    (void)snprintf(until, sizeof until, "On %s your account and everything in it will be deleted for good.", m->when);
    word_plainly(
        w, "Your account will soon be gone",
        (const char *const[]){until,
                              "If you want to keep it, sign in before then and recover it; everything is still "
                              "there. If not, there is nothing to do.",
                              ""},
        m->reference);
}

static void word_deleted(const struct mail *m, struct wording *w)
{
    word_plainly(
        w, "Your account was deleted",
        (const char *const[]){"Your account was deleted, and what was in it is being erased everywhere. It "
                              "cannot be brought back.",
                              "This is the last mail about it: your address was used once more to send it, and "
                              "is kept no longer. You can register with it again.",
                              ""},
        m->reference);
}

void wording_of(const struct mail *mail, struct wording *ret)
{
    *ret = (struct wording){.subject = "", .text = buf_new(MAIL_BYTES_MAX), .html = buf_new(MAIL_BYTES_MAX)};
    switch (mail->template) {
    case MAIL_CLEANUP_CODE:
        word_code(mail, ret);
        break;
    case MAIL_CUSTOMER_FROZEN:
        word_frozen(mail, ret);
        break;
    case MAIL_CUSTOMER_RECOVERED:
        word_recovered(mail, ret);
        break;
    case MAIL_CUSTOMER_REMINDER:
        word_reminder(mail, ret);
        break;
    case MAIL_CUSTOMER_DELETED:
        word_deleted(mail, ret);
        break;
    }
}

void wording_cleanup(struct wording *w)
{
    buf_free(&w->text);
    buf_free(&w->html);
}
