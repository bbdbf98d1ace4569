#include "api/code_mail.h"

#include "base/clock.h"

enum err code_payload_read(const json_t *payload, struct code_payload *ret)
{
    if (json_get_str(payload, "user_id", &ret->user_id) || json_get_str(payload, "salt", &ret->salt_hex) ||
        json_get_str(payload, "correlation_id", &ret->correlation_id) || code_salt_parse(ret->salt_hex, &ret->salt) ||
        !str_is_uuid(ret->user_id) || !str_is_uuid(ret->correlation_id))
        return ERR_INPUT;
    if (json_get_str(payload, "language", &ret->language))
        ret->language = (struct str){NULL, 0};
    return OK;
}

void code_mail_write(const struct code_mail *words, const struct code_letter *letter, struct mail *ret)
{
    char shown[CODE_TEXT_MAX];
    code_show(letter->shape, letter->code, shown);
    const struct mail_words all = {
        .template = "code",
        .subject = words->subject,
        .heading = words->opening,
        .paragraphs = {letter->minutes == 1 ? words->life_one : words->life_other, words->warning},
        .count = 2,
        .page = words->page,
        .open = words->open,
        .button = words->button,
    };
    mail_write(ret, letter->design, letter->language, &all, letter->reference, shown,
               json_pack("{s:i}", "minutes", letter->minutes));
    secret_wipe(shown, sizeof shown);
}

enum err code_mail_compose(const struct code_mail *words, const struct code_keys *keys,
                           const struct mail_design *design, const struct code_shape *shape,
                           const struct code_payload *payload, const struct pg_call *found, struct mail *ret)
{
    int64_t left_s = found->rows ? pg_get_i64(found, 0, 1) : 0;
    if (left_s <= 0)
        return ERR_MISSING;
    struct code code = code_derive(keys, shape, &payload->salt, payload->user_id.at);
    code_mail_write(words,
                    &(struct code_letter){.design = design,
                                          .language = mail_language(design, payload->language),
                                          .shape = shape,
                                          .code = &code,
                                          .minutes = (int)((left_s + 59) / 60),
                                          .reference = payload->correlation_id.at},
                    ret);
    secret_wipe(&code, sizeof code);
    ret->expires_us = clock_installation_us() + left_s * 1000000;
    return str_copy(pg_get(found, 0, 0), ret->to, sizeof ret->to);
}
