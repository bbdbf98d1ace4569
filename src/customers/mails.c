#include "customers/mails.h"

#include <stdio.h>

#include "customers/customers.h"
#include "customers/last_mail.h"
#include "customers/sign_in_codes.h"
#include "customers/statements.h"

#define TO_ACCOUNT .page = "/account", .open = TEXT_MAIL_ACCOUNT_OPEN, .button = TEXT_MAIL_ACCOUNT_BUTTON

static const struct mail_words words[] = {
    [CUSTOMER_MAIL_FROZEN] = {.subject = TEXT_MAIL_FROZEN_SUBJECT,
                              .paragraphs = {TEXT_MAIL_FROZEN_WHAT, TEXT_MAIL_FROZEN_UNTIL, TEXT_MAIL_FROZEN_BACK},
                              .count = 3,
                              TO_ACCOUNT},
    [CUSTOMER_MAIL_MOVED] = {.subject = TEXT_MAIL_MOVED_SUBJECT,
                             .paragraphs = {TEXT_MAIL_MOVED_DATE, TEXT_MAIL_RECOVER_BEFORE},
                             .count = 2,
                             TO_ACCOUNT},
    [CUSTOMER_MAIL_RECOVERED] = {.subject = TEXT_MAIL_RECOVERED_SUBJECT,
                                 .paragraphs = {TEXT_MAIL_RECOVERED_WHAT, TEXT_MAIL_RECOVERED_WARNING},
                                 .count = 2,
                                 TO_ACCOUNT},
    [CUSTOMER_MAIL_REMINDER] = {.subject = TEXT_MAIL_REMINDER_SUBJECT,
                                .paragraphs = {TEXT_MAIL_REMINDER_DATE, TEXT_MAIL_RECOVER_BEFORE},
                                .count = 2,
                                TO_ACCOUNT},
    [CUSTOMER_MAIL_DELETED] = {.subject = TEXT_MAIL_DELETED_SUBJECT,
                               .paragraphs = {TEXT_MAIL_DELETED_WHAT, TEXT_MAIL_DELETED_ADDRESS},
                               .count = 2},
};

/* After an administrator's freeze: signing in does not help, so there is no link. */
static struct mail_words by_admin(enum customer_mail kind)
{
    struct mail_words w = words[kind];
    if (kind == CUSTOMER_MAIL_FROZEN)
        w.paragraphs[0] = TEXT_MAIL_FROZEN_BY_ADMIN;
    if (kind == CUSTOMER_MAIL_FROZEN || kind == CUSTOMER_MAIL_MOVED || kind == CUSTOMER_MAIL_REMINDER) {
        w.paragraphs[w.count - 1] = TEXT_MAIL_ASK_ADMINISTRATOR;
        w.page = NULL;
    }
    return w;
}

void customer_mail_write(const struct mail_design *design, const struct customer_letter *letter, struct mail *ret)
{
    struct mail_words w = letter->by_admin ? by_admin(letter->kind) : words[letter->kind];
    if (letter->cools_down)
        w.paragraphs[w.count - 1] = TEXT_MAIL_DELETED_COOLS;
    char page[128];
    if (letter->proof) {
        snprintf(page, sizeof page, "/v1/customers/%.36s/certificate?secret=%s", letter->customer_id,
                 letter->proof->link);
        w.paragraphs[w.count++] = TEXT_MAIL_DELETED_CERTIFICATE;
        w.page = page;
        w.open = TEXT_MAIL_DELETED_OPEN;
        w.button = TEXT_MAIL_DELETED_BUTTON;
    }
    w.template = "notice";
    w.heading = w.subject;
    mail_write(ret, design, letter->language, &w, letter->customer_id, NULL,
               json_pack("{s:o, s:s*}", "when", mail_date(design, letter->language, letter->when), "salt",
                         letter->proof ? letter->proof->salt : NULL));
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

/* The customer's own, then that of the request which changed it. */
static enum language language_of(const struct mail_design *design, struct str customers, const json_t *payload)
{
    struct str asked;
    enum language language;
    if (customers.at && !language_parse(customers, &language))
        return language;
    return mail_language(design, json_get_str(payload, "language", &asked) ? (struct str){NULL, 0} : asked);
}

static enum err compose_change(const struct customers *context, struct pg *pg, const json_t *payload,
                               enum customer_mail kind, enum customer_state state, int64_t deadline_ns,
                               struct mail *ret)
{
    const struct mail_design *design = post_design(context->post);
    struct pg_call row;
    enum err e = read_change(pg, payload, state, deadline_ns, &row);
    if (e)
        return e;
    customer_mail_write(design,
                        &(struct customer_letter){.kind = kind,
                                                  .customer_id = customer_id_of(payload),
                                                  .language = language_of(design, pg_get(&row, 0, 4), payload),
                                                  .when = pg_get(&row, 0, 2),
                                                  .by_admin = is_by_admin(&row)},
                        ret);
    return set_recipient(pg_get(&row, 0, 1), ret) ? OK : ERR_MISSING;
}

static enum err compose_frozen(void *context, struct pg *pg, const json_t *payload, int64_t deadline_ns,
                               struct mail *ret)
{
    return compose_change(context, pg, payload, CUSTOMER_MAIL_FROZEN, STATE_FROZEN, deadline_ns, ret);
}

static enum err compose_moved(void *context, struct pg *pg, const json_t *payload, int64_t deadline_ns,
                              struct mail *ret)
{
    return compose_change(context, pg, payload, CUSTOMER_MAIL_MOVED, STATE_FROZEN, deadline_ns, ret);
}

static enum err compose_recovered(void *context, struct pg *pg, const json_t *payload, int64_t deadline_ns,
                                  struct mail *ret)
{
    return compose_change(context, pg, payload, CUSTOMER_MAIL_RECOVERED, STATE_ACTIVE, deadline_ns, ret);
}

/* For one schedule only: a customer that was frozen again has another. */
static enum err compose_reminder(void *context, struct pg *pg, const json_t *payload, int64_t deadline_ns,
                                 struct mail *ret)
{
    const struct mail_design *design = post_design(((const struct customers *)context)->post);
    struct str id, scheduled;
    if (read_customer_id(payload, &id) || json_get_str(payload, "scheduled", &scheduled))
        return ERR_INPUT;
    struct pg_call row = {.ask = &customer_read_reminder, .args = {pg_text(id.at), pg_text(scheduled.at)}};
    enum err e = pg_ask(pg, &row, deadline_ns);
    if (e || row.rows == 0)
        return e ? e : ERR_MISSING;
    customer_mail_write(design,
                        &(struct customer_letter){.kind = CUSTOMER_MAIL_REMINDER,
                                                  .customer_id = id.at,
                                                  .language = language_of(design, pg_get(&row, 0, 4), payload),
                                                  .when = pg_get(&row, 0, 1),
                                                  .by_admin = is_by_admin(&row)},
                        ret);
    ret->expires_us = pg_get_i64(&row, 0, 2);
    return set_recipient(pg_get(&row, 0, 0), ret) ? OK : ERR_MISSING;
}

/* The item holds the address, sealed; the customer's row has none any more. */
static enum err compose_last_mail(void *context, struct pg *pg, const json_t *payload, int64_t deadline_ns,
                                  struct mail *ret)
{
    (void)pg, (void)deadline_ns;
    const struct customers *customers = context;
    const struct mail_design *design = post_design(customers->post);
    struct str id, sealed;
    if (read_customer_id(payload, &id) || json_get_str(payload, "sealed", &sealed))
        return ERR_INPUT;
    struct last_mail own;
    enum err e = last_mail_open(customers->last_mail_key, id, sealed, &own);
    if (e)
        return e;
    customer_mail_write(design,
                        &(struct customer_letter){.kind = CUSTOMER_MAIL_DELETED,
                                                  .customer_id = id.at,
                                                  .language = language_of(design, (struct str){NULL, 0}, payload),
                                                  .cools_down = atomic_load(&customers->cooldown_ms) > 0,
                                                  .proof = *own.salt ? &own : NULL},
                        ret);
    e = str_copy(str_of(own.to), ret->to, sizeof ret->to);
    secret_wipe(&own, sizeof own);
    return e;
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
