#include "recovery/code_mail.h"

#include <stdio.h>

#include "base/clock.h"
#include "recovery/cleanup.h"
#include "recovery/statements.h"

void code_mail_write(const struct code_shape *shape, const struct code *code, int minutes, const char *reference,
                     struct mail *ret)
{
    char shown[CODE_TEXT_MAX];
    const char *unit = minutes == 1 ? "minute" : "minutes";
    code_show(shape, code, shown);
    mail_begin(ret, "Your verification code");
    (void)snprintf(ret->reference, sizeof ret->reference, "%s", reference);
    buf_addf(&ret->text,
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
             "\r\n",
             shown, minutes, unit);
    buf_addz(&ret->html, "<p>Your verification code is</p>\r\n"
                         "<p style=\"font-family:ui-monospace,Consolas,Menlo,monospace;font-size:32px;font-weight:bold;"
                         "letter-spacing:3px;margin:24px 0\">");
    mail_add_escaped(ret, shown);
    buf_addf(&ret->html,
             "</p>\r\n<p>It is valid for %d %s and works once. Enter it where you asked for it: the unfinished "
             "registration of this address is then removed, and you can register again.</p>\r\n"
             "<p>If it was not you who asked, ignore this mail: without the code nothing happens.</p>\r\n",
             minutes, unit);
    mail_end(ret);
    secret_wipe(shown, sizeof shown);
}

/* For an item that was taken over: derives the same code again. The context is a struct cleanup. */
static enum err compose(void *context, struct pg *pg, const json_t *payload, int64_t deadline_ns, struct mail *ret)
{
    const struct cleanup *cleanup = context;
    struct str user_id, salt_hex, correlation_id;
    struct code_salt salt;
    if (json_get_str(payload, "user_id", &user_id) || json_get_str(payload, "salt", &salt_hex) ||
        json_get_str(payload, "correlation_id", &correlation_id) || code_salt_parse(salt_hex, &salt) ||
        !str_is_uuid(user_id) || !str_is_uuid(correlation_id))
        return ERR_INPUT;
    struct pg_call call = {.ask = &cleanup_read_mail, .args = {pg_text(user_id.at), pg_text(salt_hex.at)}};
    enum err e = pg_ask(pg, &call, deadline_ns);
    if (e)
        return e;
    int64_t left_s = call.rows ? pg_get_i64(&call, 0, 1) : 0;
    if (left_s <= 0)
        return ERR_MISSING; /* expired, replaced, or the user is gone */

    const struct code_shape *shape = &cleanup->contract->code;
    struct code code = code_derive(cleanup->code_keys, shape, &salt, user_id.at);
    code_mail_write(shape, &code, (int)((left_s + 59) / 60), correlation_id.at, ret);
    secret_wipe(&code, sizeof code);
    ret->expires_us = clock_wall_us() + left_s * 1000000;
    return str_copy(pg_get(&call, 0, 0), ret->to, sizeof ret->to);
}

static const struct mail_template templates[] = {{"cleanup-code", compose}};

struct mail_templates cleanup_mails(struct cleanup *context)
{
    return (struct mail_templates){templates, COUNT_OF(templates), context};
}
