/* What a mail looks like: right for every reader, and nothing from a setting or an address can break out of its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "mail/inside.h"
#include "test_design.h"

#define REFERENCE "3f0b5ab0-5df2-4d33-8f5e-0d3e9c6b1a11"

static const struct mail_words sample_words = {
    .template = "code",
    .subject = TEXT_MAIL_RECOVERY_SUBJECT,
    .heading = TEXT_MAIL_RECOVERY_OPENING,
    .paragraphs = {TEXT_MAIL_FROZEN_UNTIL},
    .count = 1,
    .page = "/recover",
    .open = TEXT_MAIL_RECOVERY_OPEN,
    .button = TEXT_MAIL_RECOVERY_BUTTON,
};

/* In place of the date stands what somebody could have written into a name. */
static struct mail sample_in(enum language language, bool links)
{
    struct mail mail;
    mail_write(&mail, test_design(links), language, &sample_words, REFERENCE, "ABCD-EFGH",
               json_pack("{s:s}", "when", "<b>&\"**18**\"</b>"));
    assert_int_equal(mail.text.failed, OK);
    assert_int_equal(mail.html.failed, OK);
    return mail;
}

static struct mail sample(const char *to)
{
    struct mail mail = sample_in(LANGUAGE_EN, false);
    (void)snprintf(mail.to, sizeof mail.to, "%s", to);
    return mail;
}

static struct buf written(const char *from_text, const char *to)
{
    struct mail_from from;
    struct buf out = buf_new(1 << 16);
    AUTO(mail) struct mail mail = sample(to);
    assert_int_equal(mail_from_parse(str_of(from_text), &from), OK);
    mime_write(&out, &(struct mime_message){.from = &from,
                                            .mail = &mail,
                                            .key = "0123456789abcdef0123456789abcdef",
                                            .date_us = INT64_C(1773835200) * 1000000});
    assert_int_equal(out.failed, OK);
    return out;
}

static void both_parts_have_every_paragraph_and_the_reference(void **state)
{
    (void)state;
    AUTO(mail) struct mail mail = sample("uma@example.com");
    assert_string_equal(buf_str(&mail.text).at,
                        "Your verification code is\r\n\r\n    ABCD-EFGH\r\n\r\n"
                        "It stays frozen until <b>&\"**18**\"</b>. Then everything in it is deleted, and cannot be "
                        "brought back.\r\n\r\nReference: " REFERENCE "\r\n");
    assert_non_null(strstr(buf_str(&mail.html).at, "<title>Your verification code</title>"));
    assert_non_null(strstr(mail.html.at, "<html lang=\"en\">"));
    assert_non_null(strstr(mail.html.at, "Reference: " REFERENCE "</td>"));
    assert_null(strstr(mail.html.at, "{{"));
    assert_null(strstr(mail.html.at, "href"));
}

static void markup_in_what_is_filled_in_is_only_text(void **state)
{
    (void)state;
    AUTO(mail) struct mail mail = sample("uma@example.com");
    assert_null(strstr(buf_str(&mail.html).at, "<b>"));
    assert_non_null(strstr(mail.html.at, "<strong>&lt;b&gt;&amp;&quot;**18**&quot;&lt;/b&gt;</strong>"));
    assert_non_null(strstr(mail.html.at, "Tom &amp; &lt;b&gt;Uma&lt;/b&gt;"));
}

static void a_reader_of_german_gets_german_in_every_part(void **state)
{
    (void)state;
    AUTO(mail) struct mail mail = sample_in(LANGUAGE_DE, true);
    assert_string_equal(mail.subject, "Ihr Best\xc3\xa4tigungscode");
    assert_non_null(strstr(buf_str(&mail.text).at, "Ihr Best\xc3\xa4tigungscode lautet\r\n\r\n    ABCD-EFGH\r\n"));
    assert_non_null(strstr(mail.text.at, "Vorgang: " REFERENCE "\r\n"));
    assert_non_null(strstr(buf_str(&mail.html).at, "<html lang=\"de\">"));
    assert_non_null(strstr(mail.html.at, ">Code eingeben<"));
}

static void a_link_has_the_code_where_no_server_sees_it(void **state)
{
    (void)state;
    AUTO(mail) struct mail mail = sample_in(LANGUAGE_EN, true);
    assert_non_null(strstr(buf_str(&mail.text).at, " https://example.com/recover#ABCD-EFGH\r\n"));
    assert_non_null(strstr(buf_str(&mail.html).at, "href=\"https://example.com/recover#ABCD-EFGH\""));
}

static void dates_are_written_as_the_language_does(void **state)
{
    (void)state;
    static const char *const dates[] = {
        [LANGUAGE_EN] = "18 March 2026, 12:00 UTC", [LANGUAGE_DE] = "18. M\xc3\xa4rz 2026, 12:00 UTC"};
    for (enum language l = LANGUAGE_EN; l < LANGUAGES; l++) {
        AUTO(json) json_t *date = mail_date(test_design(false), l, STR("2026-03-18T12:00:00.000000Z"));
        assert_string_equal(json_string_value(date), dates[l]);
        AUTO(json) json_t *none = mail_date(test_design(false), l, STR(""));
        assert_string_equal(json_string_value(none), "");
    }
}

static void a_language_that_is_not_here_gets_the_default(void **state)
{
    (void)state;
    const struct mail_design *design = test_design(false);
    assert_int_equal(mail_language(design, STR("de-AT")), LANGUAGE_DE);
    assert_int_equal(mail_language(design, STR("fr")), LANGUAGE_EN);
    assert_int_equal(mail_language(design, STR("")), LANGUAGE_EN);
    assert_int_equal(mail_language(design, str_of(NULL)), LANGUAGE_EN);
}

/* The subject's header, up to the next one. */
static void assert_subject(const char *subject, const char *header)
{
    struct mail_from from;
    AUTO(buf) struct buf out = buf_new(1 << 16);
    AUTO(mail) struct mail mail = sample("uma@example.com");
    (void)snprintf(mail.subject, sizeof mail.subject, "%s", subject);
    assert_int_equal(mail_from_parse(STR("a@example.com"), &from), OK);
    mime_write(&out, &(struct mime_message){.from = &from, .mail = &mail, .key = "0"});
    const char *found = strstr(buf_str(&out).at, "Subject: ");
    assert_non_null(found);
    assert_memory_equal(found, header, strlen(header));
}

static void subjects_beyond_ascii_are_encoded_words(void **state)
{
    (void)state;
    assert_subject("Your sign-in code", "Subject: Your sign-in code\r\nDate:");
    assert_subject("Ihr Konto wird gel\xc3\xb6scht", "Subject: =?UTF-8?B?SWhyIEtvbnRvIHdpcmQgZ2Vsw7ZzY2h0?=\r\nDate:");
    assert_subject("=?UTF-8?B?QQ==?=", "Subject: =?UTF-8?B?PT9VVEYtOD9CP1FRPT0/PQ==?=\r\nDate:");
    assert_subject("a\r\nBcc: b@example.com", "Subject: =?UTF-8?B?");
    assert_subject("Ihr Konto wird an einem anderen Tag gel\xc3\xb6scht, und zwar bald",
                   "Subject: =?UTF-8?B?SWhyIEtvbnRvIHdpcmQgYW4gZWluZW0gYW5kZXJlbiBUYWcgZ2Vsw7ZzY2h0?=\r\n =?UTF-8?B?");
}

static void the_headers_are_those_of_an_automatic_mail(void **state)
{
    (void)state;
    AUTO(buf) struct buf out = written("Reclaim <reclaim@example.com>", "uma@example.com");
    static const char head[] =
        "From: Reclaim <reclaim@example.com>\r\n"
        "To: uma@example.com\r\n"
        "Subject: Your verification code\r\n"
        "Date: Wed, 18 Mar 2026 12:00:00 +0000\r\n"
        "Message-ID: <0123456789abcdef0123456789abcdef@example.com>\r\n"
        "Auto-Submitted: auto-generated\r\n"
        "MIME-Version: 1.0\r\n"
        "Content-Type: multipart/alternative; boundary=\"=_0123456789abcdef0123456789abcdef\"\r\n"
        "\r\n"
        "--=_0123456789abcdef0123456789abcdef\r\n"
        "Content-Type: text/plain; charset=utf-8\r\n"
        "Content-Transfer-Encoding: quoted-printable\r\n"
        "\r\n"
        "Your verification code is\r\n\r\n    ABCD-EFGH\r\n";
    assert_memory_equal(out.at, head, sizeof head - 1);
    static const char tail[] = "\r\n--=_0123456789abcdef0123456789abcdef--\r\n";
    assert_string_equal(out.at + out.len - (sizeof tail - 1), tail);
}

static void every_line_is_short_plain_and_ends_as_it_must(void **state)
{
    (void)state;
    AUTO(buf)
    struct buf out = written("\xe2\x98\x95 Caf\xc3\xa9, S\xc3\xb8ren & \xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e "
                             "with a name that goes on and on and on <reclaim@example.com>",
                             "uma@example.com");
    size_t column = 0;
    for (size_t i = 0; i < out.len; i++) {
        unsigned char c = (unsigned char)out.at[i];
        if (c == '\r') {
            assert_int_equal(out.at[++i], '\n');
            column = 0;
            continue;
        }
        assert_true(c >= ' ' && c <= '~');
        assert_true(++column <= 78 + 20); /* 78 is wished for, 998 allowed; boundaries are a little longer */
    }
}

static void names_beyond_ascii_are_encoded_words_of_whole_characters(void **state)
{
    (void)state;
    struct mail_from from;
    AUTO(buf) struct buf text = buf_new(300);
    for (int i = 0; i < 40; i++)
        buf_addz(&text, "\xe6\x97\xa5");
    buf_addz(&text, " <a@example.com>");
    assert_int_equal(mail_from_parse(buf_str(&text), &from), OK);
    AUTO(buf) struct buf out = buf_new(4096);
    mime_add_from(&out, &from, true);
    int words = 0; /* of 15 characters of three bytes each: no padding, no half character */
    for (const char *at = out.at; (at = strstr(at, "=?UTF-8?B?")); at++) {
        const char *end = strstr(at, "?=");
        assert_true(end - at + 2 <= 75);
        assert_int_not_equal(end[-1], '=');
        words++;
    }
    assert_int_equal(words, 3);
}

static void an_ascii_name_stays_readable(void **state)
{
    (void)state;
    static const struct {
        const char *text, *header;
    } names[] = {
        {"a@example.com", "a@example.com"},
        {"  a@example.com ", "a@example.com"},
        {"<a@example.com>", "a@example.com"},
        {"Reclaim <a@example.com>", "Reclaim <a@example.com>"},
        {"Example, Inc. <a@example.com>", "\"Example, Inc.\" <a@example.com>"},
        {"\"Example, Inc.\" <a@example.com>", "\"Example, Inc.\" <a@example.com>"},
        {"\"A \\\"quoted\\\" one\" <a@example.com>", "\"A \\\"quoted\\\" one\" <a@example.com>"},
        {"=?UTF-8?B?QQ==?= <a@example.com>", "=?UTF-8?B?PT9VVEYtOD9CP1FRPT0/PQ==?= <a@example.com>"},
    };
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct mail_from from;
        assert_int_equal(mail_from_parse(str_of(names[i].text), &from), OK);
        AUTO(buf) struct buf out = buf_new(4096);
        mime_add_from(&out, &from, true);
        assert_string_equal(buf_str(&out).at, names[i].header);
    }
}

static void what_could_break_a_header_is_no_sender(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        "Reclaim",
        "a@",
        "@example.com",
        "a b@example.com",
        "a@exam ple.com",
        "a@example.com\r\nBcc: b@example.com",
        "Reclaim\r\nBcc: b@example.com <a@example.com>",
        "Reclaim\nBcc: b@example.com <a@example.com>",
        "Reclaim\rX <a@example.com>",
        "Re\tclaim <a@example.com>",
        "Re\x7f <a@example.com>",
        "Re\x01 <a@example.com>",
        "Reclaim <a@example.com\r\nBcc: x>",
        "Reclaim <a@example.com>, Other <b@example.com>",
        "Reclaim <<a@example.com>>",
        "Reclaim a@example.com>",
        "Reclaim <a@example.com",
        "Reclaim <>",
        "a@example.com,b@example.com",
        "a@b@example.com",
        "\"a\"b <a@example.com>",
        "\"a <a@example.com>",
        "\"a\\\" <a@example.com>",
        "caf\xe9 <a@example.com>",
        "a..b@example.com",
        ".a@example.com",
        "a@example..com",
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct mail_from from;
        assert_int_equal(mail_from_parse(str_of(wrong[i]), &from), ERR_INPUT);
    }
    static const struct str with_nul = STR("a@example.com\0b");
    struct mail_from from;
    assert_int_equal(mail_from_parse(with_nul, &from), ERR_INPUT);
    char longest[400];
    memset(longest, 'x', sizeof longest);
    snprintf(longest + 210, sizeof longest - 210, " <a@example.com>");
    assert_int_equal(mail_from_parse(str_of(longest), &from), ERR_INPUT);
}

static void what_could_break_a_command_is_no_recipient(void **state)
{
    (void)state;
    assert_true(address_is_sound(STR("uma@example.com")));
    assert_true(address_is_sound(STR("o'hara+x@mail.example.com")));
    assert_true(address_is_sound(STR("j\xc3\xbcrg@ex\xc3\xa4mple.com")));
    assert_false(address_is_sound(STR("uma@example.com>\r\nRCPT TO:<b@example.com")));
    assert_false(address_is_sound(STR("uma@example.com>")));
    assert_false(address_is_sound(STR("<uma@example.com")));
    assert_false(address_is_sound(STR("uma@example.com ")));
    assert_false(address_is_sound(STR("\"uma b\"@example.com")));
    assert_false(address_is_sound(STR("uma@example.com\0")));
    assert_false(address_is_sound(STR("u\xffma@example.com")));
    assert_false(address_is_sound(STR("")));
}

/* Any sender that passes gives one header line (folded at most), whatever is in it. */
static void no_random_sender_ever_makes_a_second_header(void **state)
{
    (void)state;
    static const char alphabet[] = "ab \r\n\t<>@.,\"\\=?:;\x7f\xc3\xa9\xe2";
    int accepted = 0;
    for (int round = 0; round < 20000; round++) {
        char text[40];
        size_t len = random_below(20);
        for (size_t i = 0; i < len; i++)
            text[i] = alphabet[random_below(sizeof alphabet - 1)];
        len += (size_t)snprintf(text + len, sizeof text - len, "%s", round % 2 ? " <a@b.de>" : "<x@y.z>");
        struct mail_from from;
        if (mail_from_parse((struct str){text, len}, &from))
            continue;
        accepted++;
        AUTO(buf) struct buf out = buf_new(4096);
        mime_add_from(&out, &from, true);
        for (size_t i = 0; i < out.len; i++) {
            assert_true(out.at[i] != '\n' || (out.at[i - 1] == '\r' && out.at[i + 1] == ' '));
            assert_true(out.at[i] != '\r' || out.at[i + 1] == '\n');
        }
    }
    assert_true(accepted > 100);
}

static int hex(char c)
{
    return c <= '9' ? c - '0' : c - 'A' + 10;
}

static void quoted_printable_reads_back_as_it_was(void **state)
{
    (void)state;
    for (int round = 0; round < 500; round++) {
        char text[300], back[300];
        size_t len = random_below(sizeof text), n = 0, column = 0;
        for (size_t i = 0; i < len; i++)
            text[i] = random_below(4) ? (char)random_below(256) : " =.\r\n"[random_below(5)];
        AUTO(buf) struct buf out = buf_new(4096);
        mime_add_quoted_printable(&out, (struct str){text, len});
        for (size_t i = 0; i < out.len; i++) {
            column = out.at[i] == '\n' ? 0 : column + (out.at[i] != '\r');
            assert_true(column <= 76);
            if (out.at[i] == '\r') /* no space may stand before a line's end */
                assert_true(i == 0 || (out.at[i - 1] != ' ' && out.at[i - 1] != '\t'));
        }
        for (size_t i = 0; i < out.len; i++) {
            if (out.at[i] != '=') {
                back[n++] = out.at[i];
            } else if (out.at[i + 1] == '\r') {
                i += 2;
            } else {
                back[n++] = (char)(hex(out.at[i + 1]) * 16 + hex(out.at[i + 2]));
                i += 2;
            }
        }
        assert_int_equal(n, len);
        assert_memory_equal(back, text, len);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_parts_have_every_paragraph_and_the_reference),
        cmocka_unit_test(a_reader_of_german_gets_german_in_every_part),
        cmocka_unit_test(a_link_has_the_code_where_no_server_sees_it),
        cmocka_unit_test(dates_are_written_as_the_language_does),
        cmocka_unit_test(a_language_that_is_not_here_gets_the_default),
        cmocka_unit_test(subjects_beyond_ascii_are_encoded_words),
        cmocka_unit_test(markup_in_what_is_filled_in_is_only_text),
        cmocka_unit_test(the_headers_are_those_of_an_automatic_mail),
        cmocka_unit_test(every_line_is_short_plain_and_ends_as_it_must),
        cmocka_unit_test(names_beyond_ascii_are_encoded_words_of_whole_characters),
        cmocka_unit_test(an_ascii_name_stays_readable),
        cmocka_unit_test(what_could_break_a_header_is_no_sender),
        cmocka_unit_test(what_could_break_a_command_is_no_recipient),
        cmocka_unit_test(no_random_sender_ever_makes_a_second_header),
        cmocka_unit_test(quoted_printable_reads_back_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
