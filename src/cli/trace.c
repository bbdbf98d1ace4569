/* `reclaim trace`: what happened to one request or address, steps, mails and counted refusals in the order of time. */
#include "base/email.h"
#include "cli/commands.h"
#include "limits/tiers.h"
#include "recovery/audit.h"

enum err trace_read(struct command_context *c)
{
    return c->word_count == 1 ? OK : why_set(&c->why, ERR_INPUT, "say which correlation id or e-mail address");
}

/* What to look for: a correlation id as it is, an address by its keyed hash. */
static enum err subject_of(struct command_context *c, struct pg_call *ret, char hash[DIGEST_HEX_LEN + 1])
{
    struct str subject = str_of(word(c, 0)), email;
    *ret = (struct pg_call){.ask = &audit_trace, .args = {pg_null(), pg_null()}};
    if (str_is_uuid(subject)) {
        ret->args[0] = pg_text(subject.at);
        return OK;
    }
    if (email_normalise(c->arena, subject, &email))
        return why_set(&c->why, ERR_INPUT, "\"%.*s\" is neither a correlation id nor an e-mail address",
                       STR_ARGS(subject));
    struct counted counted = counted_by_email(TIER_EMAIL, &c->key, email);
    digest_hex(&counted.subject, hash);
    ret->args[1] = pg_text(hash);
    return OK;
}

static const struct report_column columns[] = {
    {.name = "at"},
    {.name = "what"},
    {.name = "outcome"},
    {.name = "count", .kind = REPORT_NUMBER},
    {.name = "correlation_id"},
    {.name = "sqlstate"},
    {.name = "constraint"},
    {.name = "detail"},
    {.name = "network_hash", .where = IN_DATA},
    {.name = "log_id", .kind = REPORT_NUMBER, .where = IN_DATA},
    {.name = "log_status", .where = IN_DATA},
    {.name = "log_error", .where = IN_DATA},
    {.name = "log_updated_at", .where = IN_DATA},
};
static const struct report_shape trace_shape = {columns, COUNT_OF(columns), true, "", "event"};

enum err trace_command(struct command_context *c)
{
    struct pg_call found;
    char hash[DIGEST_HEX_LEN + 1];
    enum err e = subject_of(c, &found, hash);
    if (e)
        return e;
    if ((e = command_ask(c, &found)))
        return why_set(&c->why, e, "the log cannot be read (%s %s); is the schema up to date? (reclaim migrate)",
                       err_name(e), found.sqlstate);
    AUTO(report) struct report *r = report_new(&trace_shape, c->format);
    report_rows(r, &found);
    return report_print(r, &c->why);
}
