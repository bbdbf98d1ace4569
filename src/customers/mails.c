#include "customers/mails.h"

#include <stdio.h>
#include <string.h>

#include "customers/customers.h"
#include "customers/statements.h"

static const struct {
    enum customer_event event;
    enum mail_template template;
    const char *name;
    enum customer_state state; /* the mail is true only while the customer is in it */
} mails[] = {
    {EVENT_FREEZE, MAIL_CUSTOMER_FROZEN, "customer-frozen", STATE_FROZEN},
    {EVENT_RECOVER, MAIL_CUSTOMER_RECOVERED, "customer-recovered", STATE_ACTIVE},
};

bool customer_mail_template(enum customer_event event, enum mail_template *ret)
{
    for (size_t i = 0; i < COUNT_OF(mails); i++)
        if (mails[i].event == event) {
            *ret = mails[i].template;
            return true;
        }
    return false;
}

void customer_mail_payload(enum mail_template template, const char *customer_id, char into[CUSTOMER_MAIL_PAYLOAD_MAX])
{
    for (size_t i = 0; i < COUNT_OF(mails); i++)
        if (mails[i].template == template)
            snprintf(into, CUSTOMER_MAIL_PAYLOAD_MAX, "{\"template\":\"%s\",\"customer_id\":\"%s\"}", mails[i].name,
                     customer_id);
}

/* False when the address is none that a mail can go to. */
static bool write_mail(enum mail_template template, const char *customer_id, struct str email, struct str effective,
                       struct mail *ret)
{
    *ret = (struct mail){.template = template};
    if (email.len == 0 || str_copy(email, ret->to, sizeof ret->to) || str_copy(effective, ret->when, sizeof ret->when))
        return false;
    memcpy(ret->reference, customer_id, sizeof ret->reference);
    return true;
}

enum err customers_compose(void *context, struct pg *pg, const json_t *payload, int64_t deadline_ns, struct mail *ret)
{
    struct customers *room = context;
    struct str name, customer_id;
    if (json_get_str(payload, "template", &name) || json_get_str(payload, "customer_id", &customer_id) ||
        !str_is_uuid(customer_id))
        return ERR_INPUT;
    for (size_t i = 0; i < COUNT_OF(mails); i++) {
        if (!str_eq(name, str_of(mails[i].name)))
            continue;
        struct pg_call call = {.ask = &customer_read_mail,
                               .args = {pg_text(customer_id.at), pg_i64(atomic_load(&room->grace_ms))}};
        enum err e = pg_ask(pg, &call, deadline_ns);
        if (e)
            return e;
        bool still = call.rows == 1 && str_eq(pg_get(&call, 0, 0), str_of(state_name(mails[i].state)));
        return still && write_mail(mails[i].template, customer_id.at, pg_get(&call, 0, 1), pg_get(&call, 0, 2), ret)
                   ? OK
                   : ERR_MISSING;
    }
    return ERR_INPUT;
}
