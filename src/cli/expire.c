/* `reclaim expire`: one pass now, whichever instance leads. */
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/deletion.h"
#include "server/database.h"

#define LIST_PAGE 1000
#define BAR 40

enum err deletion_terms_of(struct command_context *c, struct deletion_terms *ret)
{
    const struct settings *s = c->settings;
    struct digest *cooldown_key = arena_take(c->arena, sizeof *cooldown_key); /* wiped with the arena */
    bool demo = false;
    if (!cooldown_key)
        return why_set(&c->why, ERR_MEMORY, "no memory");
    enum err e = database_is_demo(c->pg, &demo, &c->why);
    if (!e)
        e = database_derive(s, COOLDOWN_PURPOSE, cooldown_key, &c->why);
    bool mails = s->resend_api_key || s->sendgrid_api_key || s->smtp_url || settings_has_mailbox(s, demo);
    *ret = (struct deletion_terms){mails ? &c->key : NULL, cooldown_key};
    return e;
}

/* Listing who is due needs no key. */
enum err expire_read(struct command_context *c)
{
    if (option(c, "--dry-run"))
        c->key_purpose = NULL;
    else if (c->format_given)
        return why_set(&c->why, ERR_INPUT, "--format goes with --dry-run");
    int64_t confirmed;
    if (option(c, "--confirm") && str_to_i64(str_of(option(c, "--confirm")), 0, INT64_MAX, &confirmed))
        return why_set(&c->why, ERR_INPUT, "--confirm takes the number of customers that may be deleted");
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

/* OK when the pass may run. With --confirm N it may delete up to N, however many became due at once. */
static enum err check_verdict(struct command_context *c, struct expiry_pass *p)
{
    int64_t confirmed = -1;
    bool confirms = option(c, "--confirm") && !str_to_i64(str_of(option(c, "--confirm")), 0, INT64_MAX, &confirmed);
    if (p->verdict == EXPIRY_CLOCKS_DIFFER)
        return why_set(
            &c->why, ERR_INPUT,
            "nobody was deleted: the database's clock is %lld seconds ahead of this machine's; set the one that "
            "is wrong",
            (long long)p->clock_difference_s);
    if (confirms && p->due > confirmed)
        return why_set(&c->why, ERR_INPUT,
                       "nobody was deleted: %lld customers are due, more than --confirm %lld allows", (long long)p->due,
                       (long long)confirmed);
    if (p->verdict == EXPIRY_BRAKED && !confirms)
        return why_set(&c->why, ERR_INPUT,
                       "nobody was deleted: %lld customers became due since the last pass, more than "
                       "RECLAIM_EXPIRY_BRAKE and 5 %% of all. Look at reclaim expire --dry-run; if they are to be "
                       "deleted: reclaim expire --confirm %lld",
                       (long long)p->became_due, (long long)p->due);
    p->over = false;
    return OK;
}

/* expiry_step repeats a batch after a conflict by itself. */
static enum err expire(struct command_context *c)
{
    struct expiry_pass p;
    struct deletion_terms terms;
    enum err e = deletion_terms_of(c, &terms);
    if (e)
        return e;
    bool bar = isatty(STDERR_FILENO);
    e = expiry_begin(c->pg, c->settings->expiry_brake, clock_ns() + DATABASE_DEADLINE_NS, &p);
    if (!e && (e = check_verdict(c, &p)))
        return e;
    while (!e && !p.over) {
        e = expiry_step(&terms, c->pg, "operator", &p);
        if (bar && !e)
            draw(&p);
    }
    if (e)
        return why_set(&c->why, e, "the pass ended early (%s); customers deleted so far stay deleted", err_name(e));
    printf("{\"processed\":%lld}\n", (long long)p.processed);
    if (p.failed)
        return why_set(&c->why, ERR_DATABASE, "%lld could not be deleted; the lines above say which",
                       (long long)p.failed);
    return OK;
}

static const struct report_column columns[] = {
    {.name = "customer_id"}, {.name = "tm_deletion_scheduled"}, {.name = "deletion_effective_at"}};
static const struct report_shape due_shape = {columns, COUNT_OF(columns), true, "-", "customer"};

struct due_list {
    struct report *report; /* NULL: one JSON object a line, as without --format */
    int64_t count;
};

static void add_page(struct due_list *l, const struct pg_call *page)
{
    for (int row = 0; row < page->rows; row++) {
        struct str id = pg_get(page, row, 0), scheduled = pg_get(page, row, 1), effective = pg_get(page, row, 2);
        if (l->report) {
            report_text(l->report, id);
            report_text(l->report, scheduled);
            report_text(l->report, effective);
        } else {
            printf("{\"customer_id\":\"%s\",\"tm_deletion_scheduled\":\"%s\",\"deletion_effective_at\":\"%s\"}\n",
                   id.at, scheduled.at, effective.at);
        }
    }
    l->count += page->rows;
}

static enum err read_due(struct command_context *c, struct due_list *l)
{
    char after[48] = EXPIRY_FIRST, after_id[37] = UUID_NIL;
    for (;;) {
        struct pg_call page = {.ask = &expiry_list, .args = {pg_text(after), pg_text(after_id), pg_i64(LIST_PAGE)}};
        enum err e = command_ask(c, &page);
        if (e)
            return why_set(&c->why, e,
                           "the customers cannot be read (%s %s); is the schema up to date? (reclaim migrate)",
                           err_name(e), page.sqlstate);
        add_page(l, &page);
        if (page.rows < LIST_PAGE)
            return OK;
        if (str_copy(pg_get(&page, page.rows - 1, 3), after, sizeof after) ||
            str_copy(pg_get(&page, page.rows - 1, 0), after_id, sizeof after_id))
            return why_set(&c->why, ERR_FULL, "a timestamp does not fit its buffer");
    }
}

static enum err list_due(struct command_context *c)
{
    AUTO(report) struct report *report = report_new(&due_shape, c->format);
    struct due_list l = {.report = c->format_given ? report : NULL};
    enum err e = read_due(c, &l);
    if (e)
        return e;
    if (c->format_given)
        return report_print(report, &c->why);
    printf("{\"processed\":0,\"due\":%lld}\n", (long long)l.count);
    return OK;
}

enum err expire_command(struct command_context *c)
{
    return option(c, "--dry-run") ? list_due(c) : expire(c);
}
