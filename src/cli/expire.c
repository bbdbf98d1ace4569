/* `reclaim expire`: one pass now, whoever leads. */
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "calls/hangup.h"
#include "cli/commands.h"
#include "cli/delete.h"
#include "cli/options.h"
#include "customers/last_mail.h"
#include "server/database.h"

#define LIST_PAGE 1000
#define BAR 40

enum err deletion_needs(const struct settings *s, struct pg *pg, struct digest *key, struct deletion *ret,
                        struct why *why)
{
    bool demo = false;
    enum err e = database_same_key(s, pg, why);
    if (e || (e = database_derive(s, LAST_MAIL_PURPOSE, key, why)) || (e = database_is_demo(pg, &demo, why)))
        return e;
    bool mails = s->resend_api_key || s->sendgrid_api_key || s->smtp_url || settings_has_mailbox(s, demo);
    *ret = (struct deletion){.last_mail_key = mails ? key : NULL, .hangup = &hangup_for_others};
    return OK;
}

static void draw(const struct expiry_pass *p)
{
    int64_t done = p->processed + p->failed;
    int full = p->due > 0 && done < p->due ? (int)(done * BAR / p->due) : BAR;
    fprintf(stderr, "\r[");
    for (int i = 0; i < BAR; i++)
        fputc(i < full ? '#' : '.', stderr);
    fprintf(stderr, "] %lld of %lld%s", (long long)done, (long long)p->due, p->over ? "\n" : "");
}

static enum err expire(struct pg *pg, const struct settings *s, const struct deletion *needs, struct why *why)
{
    struct expiry_pass p;
    bool bar = isatty(STDERR_FILENO);
    enum err e = expiry_begin(pg, s->grace_ms, clock_ns() + DATABASE_DEADLINE_NS, &p);
    while (!e && !p.over) {
        e = expiry_step(needs, pg, "operator", &p);
        if (bar && !e)
            draw(&p);
    }
    if (e)
        return why_set(why, e, "the pass ended early (%s); what it has done stays done", err_name(e));
    printf("{\"processed\":%lld}\n", (long long)p.processed);
    if (p.failed)
        return why_set(why, ERR_DATABASE, "%lld could not be deleted; the lines above say which", (long long)p.failed);
    return OK;
}

/* One line a customer, then the sum. */
static enum err list(struct pg *pg, const struct settings *s, struct why *why)
{
    char after[48] = EXPIRY_FIRST, after_id[37] = EXPIRY_FIRST_ID;
    int64_t due = 0;
    for (;;) {
        struct pg_call call = {.ask = &expiry_list,
                               .args = {pg_i64(s->grace_ms), pg_text(after), pg_text(after_id), pg_i64(LIST_PAGE)}};
        enum err e = pg_ask(pg, &call, clock_ns() + DATABASE_DEADLINE_NS);
        if (e)
            return why_set(why, e, "the customers cannot be read (%s %s); is the schema up to date? (reclaim migrate)",
                           err_name(e), call.sqlstate);
        for (int row = 0; row < call.rows; row++)
            printf("{\"customer_id\":\"%s\",\"tm_deletion_scheduled\":\"%s\"}\n", pg_get(&call, row, 0).at,
                   pg_get(&call, row, 1).at);
        due += call.rows;
        if (call.rows < LIST_PAGE)
            break;
        if (str_copy(pg_get(&call, call.rows - 1, 2), after, sizeof after) ||
            str_copy(pg_get(&call, call.rows - 1, 0), after_id, sizeof after_id))
            return why_set(why, ERR_FULL, "a time is longer than times are");
    }
    printf("{\"processed\":0,\"due\":%lld}\n", (long long)due);
    return OK;
}

int command_expire(int argc, char **argv)
{
    struct option_rule options[] = {{"--config", true, NULL}, {"--dry-run", false, NULL}};
    if (options_read(argc, argv, options, COUNT_OF(options), 0, NULL))
        return 2;
    struct why why = {""};
    struct digest key;
    struct deletion needs;
    AUTO(settings) struct settings *s = NULL;
    AUTO(database) struct database db = {0};
    enum err e = settings_load(options[0].value, &s, &why);
    if (e || (e = database_open(s, &db, &why)))
        return command_failed("expire", &why);
    if (options[1].value)
        e = list(db.pg, s, &why);
    else if (!(e = deletion_needs(s, db.pg, &key, &needs, &why)))
        e = expire(db.pg, s, &needs, &why);
    return e ? command_failed("expire", &why) : 0;
}
