#include "customers/mails.h"

#include <stdio.h>
#include <string.h>

#include "customers/customers.h"
#include "customers/last_mail.h"
#include "customers/statements.h"

static const struct {
    enum customer_event event;
    enum mail_template template;
    const char *name;
    enum customer_state state; /* the mail is true only while the customer is in it */
} mails[] = {
    {CUSTOMER_FREEZES, MAIL_CUSTOMER_FROZEN, "customer-frozen", STATE_FROZEN},
    {CUSTOMER_RECOVERS, MAIL_CUSTOMER_RECOVERED, "customer-recovered", STATE_ACTIVE},
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

/* True for one schedule only: freezing again is another. */
static enum err compose_reminder(struct customers *context, struct pg *pg, const json_t *payload,
                                 struct str customer_id, int64_t deadline_ns, struct mail *ret)
{
    struct str scheduled;
    if (json_get_str(payload, "scheduled", &scheduled))
        return ERR_INPUT;
    struct pg_call call = {
        .ask = &customer_read_reminder,
        .args = {pg_text(customer_id.at), pg_i64(atomic_load(&context->grace_ms)), pg_text(scheduled.at)}};
    enum err e = pg_ask(pg, &call, deadline_ns);
    if (e)
        return e;
    if (call.rows == 0 ||
        !write_mail(MAIL_CUSTOMER_REMINDER, customer_id.at, pg_get(&call, 0, 0), pg_get(&call, 0, 1), ret))
        return ERR_MISSING;
    ret->expires_us = pg_get_i64(&call, 0, 2);
    return OK;
}

/* The address is in the item, sealed; the customer has none any more. */
static enum err compose_last_mail(const struct customers *context, const json_t *payload, struct str customer_id,
                                  struct mail *ret)
{
    struct str sealed;
    *ret = (struct mail){.template = MAIL_CUSTOMER_DELETED};
    if (json_get_str(payload, "sealed", &sealed) ||
        last_mail_open(context->last_mail_key, customer_id, sealed, ret->to))
        return ERR_INPUT;
    return str_copy(customer_id, ret->reference, sizeof ret->reference);
}

enum err customers_compose(void *context, struct pg *pg, const json_t *payload, int64_t deadline_ns, struct mail *ret)
{
    struct customers *customers = context;
    struct str name, customer_id;
    if (json_get_str(payload, "template", &name) || json_get_str(payload, "customer_id", &customer_id) ||
        !str_is_uuid(customer_id))
        return ERR_INPUT;
    if (str_eq(name, STR("customer-reminder")))
        return compose_reminder(customers, pg, payload, customer_id, deadline_ns, ret);
    if (str_eq(name, STR("customer-deleted")))
        return compose_last_mail(customers, payload, customer_id, ret);
    for (size_t i = 0; i < COUNT_OF(mails); i++) {
        if (!str_eq(name, str_of(mails[i].name)))
            continue;
        struct pg_call call = {.ask = &customer_read_mail,
                               .args = {pg_text(customer_id.at), pg_i64(atomic_load(&customers->grace_ms))}};
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
