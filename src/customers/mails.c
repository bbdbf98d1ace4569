#include "customers/mails.h"

#include <stdio.h>
#include <string.h>

#include "customers/customers.h"
#include "customers/last_mail.h"
#include "customers/sign_in_codes.h"
#include "customers/statements.h"

static void add_paragraph(struct mail *mail, const char *text, const char *when)
{
    char filled[512];
    const char *at = strstr(text, WHEN);
    if (at) {
        (void)snprintf(filled, sizeof filled, "%.*s%s%s", (int)(at - text), text, when, at + sizeof WHEN - 1);
        text = filled;
    }
    mail_add_paragraph(mail, text);
}

void customer_mail_write(enum customer_mail kind, const char *customer_id, const char *when, bool by_admin,
                         struct mail *ret)
{
    const struct customer_text *text = customer_text_of(kind);
    const char *const *paragraphs =
        by_admin && text->paragraphs_by_admin[0] ? text->paragraphs_by_admin : text->paragraphs;
    mail_begin(ret, text->subject);
    memcpy(ret->reference, customer_id, sizeof ret->reference);
    for (size_t i = 0; i < MAIL_PARAGRAPHS_MAX && paragraphs[i]; i++)
        add_paragraph(ret, paragraphs[i], when);
    mail_end(ret);
}

/* Composing them from the payload of a work item */

static enum err read_customer_id(const json_t *payload, struct str *ret)
{
    return json_get_str(payload, "customer_id", ret) || !str_is_uuid(*ret) ? ERR_INPUT : OK;
}

/* False when no mail can be sent to the address. */
static bool set_recipient(struct str email, struct mail *ret)
{
    return email.len > 0 && str_copy(email, ret->to, sizeof ret->to) == OK;
}

/* The mail of a change is sent only while the customer is in the state that it announces. */
static enum err read_change(struct pg *pg, const json_t *payload, enum customer_state state, int64_t deadline_ns,
                            struct pg_call *ret)
{
    struct str id;
    if (read_customer_id(payload, &id))
        return ERR_INPUT;
    *ret = (struct pg_call){.ask = &customer_read_mail, .args = {pg_text(id.at)}};
    enum err e = pg_ask(pg, ret, deadline_ns);
    if (e)
        return e;
    return ret->rows == 1 && str_eq(pg_get(ret, 0, 0), str_of(state_name(state))) ? OK : ERR_MISSING;
}

static bool is_by_admin(const struct pg_call *row)
{
    return str_eq(pg_get(row, 0, 3), STR("admin"));
}

static const char *customer_id_of(const json_t *payload)
{
    return json_string_value(json_object_get(payload, "customer_id"));
}

static enum err compose_change(struct pg *pg, const json_t *payload, enum customer_mail kind, enum customer_state state,
                               int64_t deadline_ns, struct mail *ret)
{
    struct pg_call row;
    enum err e = read_change(pg, payload, state, deadline_ns, &row);
    if (e)
        return e;
    customer_mail_write(kind, customer_id_of(payload), pg_get(&row, 0, 2).at, is_by_admin(&row), ret);
    return set_recipient(pg_get(&row, 0, 1), ret) ? OK : ERR_MISSING;
}

static enum err compose_frozen(void *context, struct pg *pg, const json_t *payload, int64_t deadline_ns,
                               struct mail *ret)
{
    (void)context;
    return compose_change(pg, payload, CUSTOMER_MAIL_FROZEN, STATE_FROZEN, deadline_ns, ret);
}

static enum err compose_moved(void *context, struct pg *pg, const json_t *payload, int64_t deadline_ns,
                              struct mail *ret)
{
    (void)context;
    return compose_change(pg, payload, CUSTOMER_MAIL_MOVED, STATE_FROZEN, deadline_ns, ret);
}

static enum err compose_recovered(void *context, struct pg *pg, const json_t *payload, int64_t deadline_ns,
                                  struct mail *ret)
{
    (void)context;
    return compose_change(pg, payload, CUSTOMER_MAIL_RECOVERED, STATE_ACTIVE, deadline_ns, ret);
}

/* For one schedule only: a customer that was frozen again has another. */
static enum err compose_reminder(void *context, struct pg *pg, const json_t *payload, int64_t deadline_ns,
                                 struct mail *ret)
{
    (void)context;
    struct str id, scheduled;
    if (read_customer_id(payload, &id) || json_get_str(payload, "scheduled", &scheduled))
        return ERR_INPUT;
    struct pg_call row = {.ask = &customer_read_reminder, .args = {pg_text(id.at), pg_text(scheduled.at)}};
    enum err e = pg_ask(pg, &row, deadline_ns);
    if (e || row.rows == 0)
        return e ? e : ERR_MISSING;
    customer_mail_write(CUSTOMER_MAIL_REMINDER, id.at, pg_get(&row, 0, 1).at, is_by_admin(&row), ret);
    ret->expires_us = pg_get_i64(&row, 0, 2);
    return set_recipient(pg_get(&row, 0, 0), ret) ? OK : ERR_MISSING;
}

/* The item holds the address, sealed; the customer's row has none any more. */
static enum err compose_last_mail(void *context, struct pg *pg, const json_t *payload, int64_t deadline_ns,
                                  struct mail *ret)
{
    (void)pg, (void)deadline_ns;
    const struct customers *customers = context;
    struct str id, sealed;
    if (read_customer_id(payload, &id) || json_get_str(payload, "sealed", &sealed))
        return ERR_INPUT;
    customer_mail_write(CUSTOMER_MAIL_DELETED, id.at, "", false, ret);
    return last_mail_open(customers->last_mail_key, id, sealed, ret->to);
}

static const struct mail_template templates[] = {
    {.name = "customer-frozen", .compose = compose_frozen},
    {.name = "customer-moved", .compose = compose_moved},
    {.name = "customer-recovered", .compose = compose_recovered},
    {.name = "customer-reminder", .compose = compose_reminder},
    {.name = "customer-deleted", .compose = compose_last_mail},
    {.name = "sign-in-code", .compose = sign_in_code_mail_compose, .passes = true},
};

struct mail_templates customers_mails(struct customers *context)
{
    return (struct mail_templates){templates, COUNT_OF(templates), context};
}
