#include "customers/mails.h"

#include <stdio.h>
#include <string.h>

#include "customers/customers.h"
#include "customers/last_mail.h"
#include "customers/sign_in_codes.h"
#include "customers/statements.h"

/* What they contain: paragraphs, the last of them "". */
static void write_mail(const char *subject, const char *const *paragraphs, const char *customer_id, struct mail *ret)
{
    mail_begin(ret, subject);
    memcpy(ret->reference, customer_id, sizeof ret->reference);
    for (; **paragraphs; paragraphs++)
        mail_add_paragraph(ret, *paragraphs);
    mail_end(ret);
}

/* What a person can do about it, which is nothing after an administrator's freeze. */
static const char ask_administrator[] = "An administrator froze it, so it cannot be recovered by signing in. If this "
                                        "is a mistake, write to the people who run "
                                        "the service.";

void customer_mail_write_frozen(const char *customer_id, const char *when, bool by_admin, struct mail *ret)
{
    char until[256];
    (void)snprintf(until, sizeof until,
                   "It stays frozen until %s. Then everything in it is deleted, and cannot be brought back.", when);
    write_mail("Your account will be deleted",
               (const char *const[]){by_admin ? "Your account was frozen: from now on it cannot be used, and costs "
                                                "nothing."
                                              : "The deletion of your account was asked for. From now on it is frozen: "
                                                "it cannot be used, and costs nothing.",
                                     until,
                                     by_admin ? ask_administrator
                                              : "Changed your mind, or was it not you? Sign in before that day and "
                                                "recover the account; everything is still there.",
                                     ""},
               customer_id, ret);
}

void customer_mail_write_moved(const char *customer_id, const char *when, bool by_admin, struct mail *ret)
{
    char until[256];
    (void)snprintf(
        until, sizeof until,
        "The deletion of your account had to wait. It has a new date: on %s your account and everything in it "
        "will be deleted for good.",
        when);
    write_mail("Your account has a new deletion date",
               (const char *const[]){until,
                                     by_admin
                                         ? ask_administrator
                                         : "If you want to keep it, sign in before then and recover it; everything "
                                           "is still there. If not, there is nothing to do.",
                                     ""},
               customer_id, ret);
}

void customer_mail_write_recovered(const char *customer_id, struct mail *ret)
{
    write_mail("Your account is active again",
               (const char *const[]){"Your account was recovered. It works as before, and nothing in it was lost.",
                                     "If it was not you who recovered it, change your password.", ""},
               customer_id, ret);
}

void customer_mail_write_reminder(const char *customer_id, const char *when, bool by_admin, struct mail *ret)
{
    char until[256];
    (void)snprintf(until, sizeof until, "On %s your account and everything in it will be deleted for good.", when);
    write_mail("Your account will soon be gone",
               (const char *const[]){until,
                                     by_admin
                                         ? ask_administrator
                                         : "If you want to keep it, sign in before then and recover it; everything "
                                           "is still there. If not, there is nothing to do.",
                                     ""},
               customer_id, ret);
}

void customer_mail_write_deleted(const char *customer_id, struct mail *ret)
{
    write_mail("Your account was deleted",
               (const char *const[]){"Your account was deleted, and what was in it is being erased everywhere. It "
                                     "cannot be brought back.",
                                     "This is the last mail about it: your address was used once more to send it, and "
                                     "is kept no longer. You can register with it again.",
                                     ""},
               customer_id, ret);
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

static enum err compose_frozen(void *context, struct pg *pg, const json_t *payload, int64_t deadline_ns,
                               struct mail *ret)
{
    (void)context;
    struct pg_call row;
    enum err e = read_change(pg, payload, STATE_FROZEN, deadline_ns, &row);
    if (e)
        return e;
    customer_mail_write_frozen(customer_id_of(payload), pg_get(&row, 0, 2).at, is_by_admin(&row), ret);
    return set_recipient(pg_get(&row, 0, 1), ret) ? OK : ERR_MISSING;
}

static enum err compose_moved(void *context, struct pg *pg, const json_t *payload, int64_t deadline_ns,
                              struct mail *ret)
{
    (void)context;
    struct pg_call row;
    enum err e = read_change(pg, payload, STATE_FROZEN, deadline_ns, &row);
    if (e)
        return e;
    customer_mail_write_moved(customer_id_of(payload), pg_get(&row, 0, 2).at, is_by_admin(&row), ret);
    return set_recipient(pg_get(&row, 0, 1), ret) ? OK : ERR_MISSING;
}

static enum err compose_recovered(void *context, struct pg *pg, const json_t *payload, int64_t deadline_ns,
                                  struct mail *ret)
{
    (void)context;
    struct pg_call row;
    enum err e = read_change(pg, payload, STATE_ACTIVE, deadline_ns, &row);
    if (e)
        return e;
    customer_mail_write_recovered(customer_id_of(payload), ret);
    return set_recipient(pg_get(&row, 0, 1), ret) ? OK : ERR_MISSING;
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
    customer_mail_write_reminder(id.at, pg_get(&row, 0, 1).at, is_by_admin(&row), ret);
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
    customer_mail_write_deleted(id.at, ret);
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
