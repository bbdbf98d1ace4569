#include "recovery/code_mail.h"

#include "base/log.h"
#include "recovery/cleanup.h"
#include "recovery/statements.h"

const struct code_mail recovery_code_words = {
    .subject = TEXT_MAIL_RECOVERY_SUBJECT,
    .opening = TEXT_MAIL_RECOVERY_OPENING,
    .life_one = TEXT_MAIL_RECOVERY_LIFE_ONE,
    .life_other = TEXT_MAIL_RECOVERY_LIFE_OTHER,
    .warning = TEXT_MAIL_RECOVERY_WARNING,
    .page = "/recover",
    .open = TEXT_MAIL_RECOVERY_OPEN,
    .button = TEXT_MAIL_RECOVERY_BUTTON,
};

enum err code_mail_contract(const json_t *payload, const struct contract **ret)
{
    struct str name;
    if (json_get_str(payload, "contract", &name) || !(*ret = contract_named(name)))
        return ERR_INPUT;
    return OK;
}

/* For an item that was taken over: the code has the shape of the contract under which it was asked for, which need not be
 * this instance's. The context is a struct cleanup. */
static enum err compose(void *context, struct pg *pg, const json_t *payload, int64_t deadline_ns, struct mail *ret)
{
    const struct cleanup *cleanup = context;
    const struct contract *contract = NULL;
    struct code_payload p;
    enum err e = code_payload_read(payload, &p);
    if (e)
        return e;
    if ((e = code_mail_contract(payload, &contract))) {
        struct str name = {"", 0};
        (void)!json_get_str(payload, "contract", &name);
        log_warn("mail of a contract that this version does not know", F_BYTES("contract", name),
                 F_BYTES("request", p.correlation_id));
        return e;
    }
    struct pg_call found = {.ask = &cleanup_read_mail,
                            .args = {pg_text(p.user_id.at), pg_text(p.salt_hex.at), pg_text(p.correlation_id.at)}};
    if ((e = pg_ask(pg, &found, deadline_ns)))
        return e;
    return code_mail_compose(&recovery_code_words, cleanup->code_keys, post_design(cleanup->post), &contract->code, &p,
                             &found, ret);
}

static const struct mail_template templates[] = {{.name = "cleanup-code", .compose = compose, .passes = true}};

struct mail_templates cleanup_mails(struct cleanup *context)
{
    return (struct mail_templates){templates, COUNT_OF(templates), context};
}
