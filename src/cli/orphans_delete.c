/* `reclaim orphans delete` and `purge`: orphaned accounts, deleted by an operator as the clean-up deletes them. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"
#include "cli/orphans.h"
#include "server/database.h"

#define TRIES_MAX 6
#define PAGE 500
#define NAMED_MAX 20 /* failures of a purge that are named */

static const struct report_column columns[] = {{.name = "id"},
                                               {.name = "email"},
                                               {.name = "created_at"},
                                               {.name = "verified", .kind = REPORT_FLAG},
                                               {.name = "last_sign_in_at"}};
static const struct report_shape page_shape = {columns, COUNT_OF(columns), true, "", "orphaned account"};

/* One account, in a transaction of its own, which is repeated after a conflict. */
static enum err delete_one(struct command_context *c, const struct operator_deletion *in, int *ret_refusal)
{
    enum err e = ERR_CONFLICT;
    for (int tries = 0; e == ERR_CONFLICT && tries < TRIES_MAX; tries++) {
        if (tries > 0)
            (void)poll(NULL, 0, 10 << tries);
        if (!pg_is_alive(c->pg) && (e = pg_connect(c->pg, clock_ns() + DATABASE_DEADLINE_NS, &c->why)))
            return e;
        e = cleanup_delete_by_operator(c->pg, in, clock_ns() + DATABASE_DEADLINE_NS, ret_refusal);
    }
    return e;
}

static enum err say_refusal(struct command_context *c, const char *user_id, int refusal)
{
    switch (refusal) {
    case CLEANUP_UNKNOWN_USER:
        return why_set(
            &c->why, ERR_MISSING,
            "nothing was deleted: there is no user %s with an address and a password of its own; accounts of "
            "single sign-on and those already deleted are left alone",
            user_id);
    case CLEANUP_NOT_ORPHANED:
        return why_set(
            &c->why, ERR_INPUT,
            "nothing was deleted: user %s is not orphaned. It has a row in a table of RECLAIM_OWNERSHIP or in "
            "another that refers to it, belongs to a customer, or is banned",
            user_id);
    case CLEANUP_BUSY:
        return why_set(&c->why, ERR_FULL,
                       "nothing was deleted: another transaction holds user %s or its address; try again", user_id);
    default:
        return why_set(
            &c->why, ERR_DATABASE,
            "nothing was deleted: it cannot be seen for certain that user %s is orphaned (reclaim doctor says "
            "why)",
            user_id);
    }
}

static enum err delete_orphan(struct command_context *c, const struct operator_deletion *in)
{
    int refusal = 0;
    enum err e = delete_one(c, in, &refusal);
    if (e)
        return why_set(&c->why, e,
                       "user %s could not be deleted (%s); another table may refer to it, or its audit row "
                       "not be written. reclaim doctor checks both",
                       in->user_id, err_name(e));
    if (refusal)
        return say_refusal(c, in->user_id, refusal);
    printf("{\"deleted\":1,\"correlation_id\":\"%s\"}\n", in->correlation_id);
    return OK;
}

struct purge {
    int64_t deleted, skipped, failed;
    bool bar;
};

static void draw(const struct purge *p)
{
    if (p->bar)
        fprintf(stderr, "\r%lld deleted, %lld skipped, %lld failed", (long long)p->deleted, (long long)p->skipped,
                (long long)p->failed);
}

/* Skipped: no orphan any more, or in use just now. A failure concerns one account; only a lost connection ends the purge. */
static enum err purge_one(struct command_context *c, struct operator_deletion *in, const char *id, struct purge *p)
{
    int refusal = 0;
    in->user_id = id;
    enum err e = delete_one(c, in, &refusal);
    if (e == ERR_CLOSED || e == ERR_TIMEOUT || e == ERR_MEMORY || refusal == CLEANUP_FAULT)
        return e ? why_set(&c->why, e, "the purge ended early (%s); accounts deleted so far stay deleted", err_name(e))
                 : say_refusal(c, id, refusal);
    if (e && p->failed++ < NAMED_MAX)
        fprintf(stderr, "%suser %s could not be deleted (%s)\n", p->bar ? "\n" : "", id, err_name(e));
    p->deleted += !e && !refusal;
    p->skipped += !e && refusal;
    return OK;
}

static enum err read_page(struct command_context *c, const struct orphan_statements *orphans, const char *after,
                          struct pg_call *ret)
{
    const struct orphans_input *in = c->input;
    *ret = (struct pg_call){.ask = &orphans->page, .args = {pg_i64(in->age_ms / 1000), pg_text(after), pg_i64(PAGE)}};
    enum err e = pg_ask(c->pg, ret, clock_ns() + 10 * DATABASE_DEADLINE_NS);
    return e ? why_set(&c->why, e, "the look-up failed (%s %s); reclaim doctor checks the tables of RECLAIM_OWNERSHIP",
                       err_name(e), ret->sqlstate)
             : OK;
}

/* The rows are copied first: each deletion reuses the connection's result. */
static enum err purge_page(struct command_context *c, struct operator_deletion *in, const struct pg_call *page,
                           struct purge *p, char last[37])
{
    char ids[PAGE][37];
    int count = page->rows;
    for (int i = 0; i < count; i++)
        if (str_copy(pg_get(page, i, 0), ids[i], sizeof ids[i]))
            return why_set(&c->why, ERR_FULL, "an id does not fit its buffer");
    enum err e = OK;
    for (int i = 0; !e && i < count; i++) {
        e = purge_one(c, in, ids[i], p);
        if (!e)
            draw(p);
    }
    in->user_id = NULL; /* it was one of these */
    if (e)
        return e;
    return count ? str_copy(str_of(ids[count - 1]), last, 37) : OK;
}

static enum err purge(struct command_context *c, struct operator_deletion *in)
{
    struct purge p = {.bar = isatty(STDERR_FILENO)};
    char last[37] = UUID_NIL;
    enum err e = OK;
    for (int rows = PAGE; !e && rows == PAGE;) {
        struct pg_call page;
        if ((e = read_page(c, in->orphans, last, &page)) == OK) {
            rows = page.rows;
            e = purge_page(c, in, &page, &p, last);
        }
    }
    if (p.bar)
        fputc('\n', stderr);
    printf("{\"deleted\":%lld,\"skipped\":%lld,\"failed\":%lld,\"correlation_id\":\"%s\"}\n", (long long)p.deleted,
           (long long)p.skipped, (long long)p.failed, in->correlation_id);
    if (!e && p.failed)
        e = why_set(&c->why, ERR_DATABASE, "%lld could not be deleted", (long long)p.failed);
    return e;
}

static enum err list_pages(struct command_context *c, const struct orphan_statements *orphans)
{
    AUTO(report) struct report *r = report_new(&page_shape, c->format);
    char last[37] = UUID_NIL;
    for (int rows = PAGE; rows == PAGE;) {
        struct pg_call page;
        enum err e = read_page(c, orphans, last, &page);
        if (e)
            return e;
        report_rows(r, &page);
        rows = page.rows;
        if (rows && (e = str_copy(pg_get(&page, rows - 1, 0), last, sizeof last)))
            return why_set(&c->why, e, "an id does not fit its buffer");
    }
    return report_print(r, &c->why);
}

enum err orphans_delete(struct command_context *c, struct orphan_statements *orphans)
{
    const struct orphans_input *asked = c->input;
    char correlation_id[37];
    if (option(c, "--dry-run"))
        return list_pages(c, orphans);
    enum err e =
        database_guard_ownership(c->pg, c->settings->ownership.at, c->settings->ownership.count, orphans, &c->why);
    if (e)
        return e;
    random_uuid(correlation_id);
    struct operator_deletion in = {.orphans = orphans,
                                   .identifier_key = &c->key,
                                   .user_id = word(c, 1),
                                   .correlation_id = correlation_id,
                                   .step = asked->verb == ORPHANS_DELETE ? "orphans-delete" : "orphans-purge",
                                   .reason = option(c, "--reason")};
    return asked->verb == ORPHANS_DELETE ? delete_orphan(c, &in) : purge(c, &in);
}
