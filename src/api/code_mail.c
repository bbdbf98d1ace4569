#include "api/code_mail.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#define LINE_MAX_COLUMNS 76

enum err code_payload_read(const json_t *payload, struct code_payload *ret)
{
    if (json_get_str(payload, "user_id", &ret->user_id) || json_get_str(payload, "salt", &ret->salt_hex) ||
        json_get_str(payload, "correlation_id", &ret->correlation_id) || code_salt_parse(ret->salt_hex, &ret->salt) ||
        !str_is_uuid(ret->user_id) || !str_is_uuid(ret->correlation_id))
        return ERR_INPUT;
    return OK;
}

/* ASCII in lines that every reader shows whole, and an empty line. */
static void add_wrapped(struct buf *out, struct str text)
{
    size_t column = 0;
    for (struct str word; str_split(&text, ' ', &word);) {
        bool fits = column + 1 + word.len <= LINE_MAX_COLUMNS;
        if (column)
            buf_addz(out, fits ? " " : "\r\n");
        column = column && fits ? column + 1 + word.len : word.len;
        buf_add(out, word);
    }
    buf_addz(out, "\r\n\r\n");
}

/* The same text in both parts. */
static void add_paragraph(struct mail *mail, const char *text)
{
    add_wrapped(&mail->text, str_of(text));
    buf_addz(&mail->html, "<p>");
    mail_add_escaped(mail, text);
    buf_addz(&mail->html, "</p>\r\n");
}

void code_mail_lay_out(const struct code_mail *words, const struct code_shape *shape, const struct code *code,
                       int minutes, const char *reference, struct mail *ret)
{
    char shown[CODE_TEXT_MAX], life[512];
    code_show(shape, code, shown);
    (void)snprintf(life, sizeof life, "It is valid for %d %s and works once. %s", minutes,
                   minutes == 1 ? "minute" : "minutes", words->use);
    mail_begin(ret, words->subject);
    (void)snprintf(ret->reference, sizeof ret->reference, "%s", reference);
    add_paragraph(ret, words->opening);
    buf_addf(&ret->text, "    %s\r\n\r\n", shown);
    buf_addz(&ret->html, "<p style=\"font-family:ui-monospace,Consolas,Menlo,monospace;font-size:32px;font-weight:bold;"
                         "letter-spacing:3px;margin:24px 0\">");
    mail_add_escaped(ret, shown);
    buf_addz(&ret->html, "</p>\r\n");
    add_paragraph(ret, life);
    add_paragraph(ret, words->warning);
    mail_end(ret);
    secret_wipe(shown, sizeof shown);
}

enum err code_mail_compose(const struct code_mail *words, const struct code_keys *keys, const struct code_shape *shape,
                           const struct code_payload *payload, const struct pg_call *found, struct mail *ret)
{
    int64_t left_s = found->rows ? pg_get_i64(found, 0, 1) : 0;
    if (left_s <= 0)
        return ERR_MISSING;
    struct code code = code_derive(keys, shape, &payload->salt, payload->user_id.at);
    code_mail_lay_out(words, shape, &code, (int)((left_s + 59) / 60), payload->correlation_id.at, ret);
    secret_wipe(&code, sizeof code);
    ret->expires_us = clock_installation_us() + left_s * 1000000;
    return str_copy(pg_get(found, 0, 0), ret->to, sizeof ret->to);
}
