/* `reclaim customers import`: customers from auth.users or a CSV file. */
#include "customers/import.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/email.h"
#include "cli/csv.h"
#include "cli/customers.h"
#include "server/database.h"

#define FAULTS_SHOWN 100
#define NAME_MAX_BYTES 1000
#define BATCH_ARENA ((size_t)8 << 20)

static const struct actor by_operator = {.kind = "operator"};

static int64_t deadline(void)
{
    return clock_ns() + 10 * DATABASE_DEADLINE_NS;
}

static void draw(int64_t done, int64_t total, bool over)
{
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r%lld of %lld%s", (long long)done, (long long)total, over ? "\n" : "");
}

/* What stopped a batch, and what to do. The table may be a team's, with rules of its own. */
static void describe_refusal(const struct pg *pg, enum err e, struct buf *into)
{
    const struct pg_fault *fault = pg_fault(pg);
    if (e == ERR_DATABASE && fault->column[0] && !strcmp(fault->sqlstate, "23502"))
        buf_addf(into,
                 "column %s of public.customer_customers must not be null and has no default; ALTER TABLE "
                 "public.customer_customers ALTER COLUMN \"%s\" SET DEFAULT …, or DROP NOT NULL",
                 fault->column, fault->column);
    else if (e == ERR_DATABASE && fault->constraint[0])
        buf_addf(into, "constraint %s of your table refuses a row; correct the row, or change the constraint",
                 fault->constraint);
    else if (e == ERR_DATABASE && fault->sqlstate[0])
        buf_addf(into, "the database refused it, SQLSTATE %s; its log has the sentence", fault->sqlstate);
    else
        buf_addf(into, "%s", err_name(e));
}

/* --- from auth.users --- */

static enum err import_from_users(struct command_context *c)
{
    struct import_pass pass;
    bool users;
    enum err e = database_users_are_customers(c->pg, &users, &c->why);
    if (e)
        return e;
    if (users) {
        fprintf(stderr, "not needed: every user is a customer already (RECLAIM_CUSTOMERS=users)\n");
        printf("{\"imported\":0,\"skipped\":0}\n");
        return OK;
    }
    e = import_users_begin(c->pg, deadline(), &pass);
    if (!e && option(c, "--dry-run")) {
        printf("{\"imported\":0,\"due\":%lld}\n", (long long)pass.total);
        return OK;
    }
    while (!e && !pass.over) {
        e = import_users_step(c->pg, &by_operator, deadline(), &pass);
        draw(pass.imported, pass.total, pass.over);
    }
    AUTO(buf) struct buf cause = buf_new(1024);
    if (e) {
        describe_refusal(c->pg, e, &cause);
        return why_set(&c->why, e, "the import ended early: %.*s. Then start it again: customers made so far stay",
                       STR_ARGS(buf_str(&cause)));
    }
    printf("{\"imported\":%lld,\"skipped\":0}\n", (long long)pass.imported);
    return OK;
}

/* --- from a file --- */

enum { COLUMN_NAME, COLUMN_EMAIL, COLUMN_OWNER, COLUMN_COUNT };
static const struct str column_names[] = {STR("name"), STR("email"), STR("owner_user_id")};

struct file_import {
    struct command_context *c;
    bool writes; /* otherwise the lines are checked */
    int field_count;
    int field_of[COLUMN_COUNT]; /* which field of a line has the column; -1: none */
    struct arena *arena;        /* of the batch */
    struct import_rows rows;
    int64_t lines[IMPORT_BATCH]; /* of the rows */
    int64_t count, faults, made; /* rows, wrong lines, customers so far */
    int64_t total;               /* rows of the file, once it was checked */
};

static void report_fault(struct file_import *f, int64_t line, const char *what)
{
    if (f->faults++ < FAULTS_SHOWN)
        fprintf(stderr, "line %lld: %s\n", (long long)line, what);
}

static enum err read_columns(struct file_import *f, const struct csv_record *header)
{
    f->field_count = header->count;
    for (int column = 0; column < COLUMN_COUNT; column++)
        f->field_of[column] = -1;
    for (int field = 0; field < header->count; field++) {
        int column = 0;
        while (column < COLUMN_COUNT && !str_eq(str_trim(header->fields[field]), column_names[column]))
            column++;
        if (column == COLUMN_COUNT || f->field_of[column] >= 0)
            return why_set(&f->c->why, ERR_INPUT,
                           "line %lld: the columns are name, email and owner_user_id, each once, not \"%s\"",
                           (long long)header->line, header->fields[field].at);
        f->field_of[column] = field;
    }
    return OK;
}

static struct str value_of(const struct file_import *f, const struct csv_record *record, int column)
{
    return f->field_of[column] < 0 ? STR("") : str_trim(record->fields[f->field_of[column]]);
}

/* What is wrong with a line; NULL when it became a row. */
static const char *add_row(struct file_import *f, const struct csv_record *record)
{
    struct str name = value_of(f, record, COLUMN_NAME), email = value_of(f, record, COLUMN_EMAIL);
    struct str owner = value_of(f, record, COLUMN_OWNER);
    if (name.len == 0 && email.len == 0 && owner.len == 0)
        return "nothing is given";
    if (name.len > NAME_MAX_BYTES || !str_is_utf8(name))
        return "the name is longer than 1000 bytes, or not UTF-8";
    if (email.len && email_normalise(f->arena, email, &email))
        return "the email is no address";
    if (owner.len && !str_is_uuid(owner))
        return "the owner_user_id is no UUID";
    f->lines[f->rows.count] = record->line;
    import_rows_add(&f->rows, name, email, owner);
    return NULL;
}

static enum err check_batch(struct file_import *f)
{
    int unknown[IMPORT_BATCH], count = 0;
    enum err e = import_rows_check(f->c->pg, &f->rows, deadline(), unknown, &count);
    for (int i = 0; !e && i < count; i++)
        report_fault(f, f->lines[unknown[i]], "the owner_user_id is not in auth.users");
    return e ? why_set(&f->c->why, e, "the owners cannot be looked up (%s); nothing was imported", err_name(e)) : OK;
}

static enum err write_batch(struct file_import *f)
{
    int64_t made = 0;
    enum err e = import_rows_write(f->c->pg, &f->rows, &by_operator, deadline(), &made);
    AUTO(buf) struct buf cause = buf_new(1024);
    if (e) {
        describe_refusal(f->c->pg, e, &cause);
        return why_set(
            &f->c->why, e,
            "lines %lld to %lld were refused: %.*s. %lld customers before them are imported; start again when "
            "that is corrected: lines that are customers are skipped",
            (long long)f->lines[0], (long long)f->lines[f->rows.count - 1], STR_ARGS(buf_str(&cause)),
            (long long)f->made);
    }
    f->made += made;
    draw(f->count, f->total, f->count == f->total);
    return OK;
}

static enum err end_batch(struct file_import *f)
{
    enum err e = OK;
    f->count += f->rows.count;
    if (f->rows.count)
        e = f->writes ? write_batch(f) : check_batch(f);
    import_rows_clear(&f->rows);
    arena_free(f->arena);
    f->arena = arena_new(4096, BATCH_ARENA);
    return e || f->arena ? e : why_set(&f->c->why, ERR_MEMORY, "no memory");
}

static enum err read_lines(struct file_import *f, struct csv *csv)
{
    struct csv_record record;
    enum err e = csv_next(csv, &record, &f->c->why);
    if (e == ERR_MISSING)
        return why_set(&f->c->why, ERR_INPUT, "the file is empty; its first line names the columns");
    if (e || (e = read_columns(f, &record)))
        return e;
    while (!(e = csv_next(csv, &record, &f->c->why))) {
        const char *fault = record.count == f->field_count ? add_row(f, &record) : "not as many fields as columns";
        if (fault)
            report_fault(f, record.line, fault);
        if (f->rows.count == IMPORT_BATCH && (e = end_batch(f)))
            return e;
    }
    return e == ERR_MISSING ? end_batch(f) : e;
}

/* One pass over the file: all lines are checked before any is written. */
static enum err pass_over(struct file_import *f, bool writes)
{
    const char *path = word(f->c, 1);
    FILE *file = fopen(path, "re");
    if (!file)
        return why_set(&f->c->why, ERR_MISSING, "%s cannot be read: %s", path, strerror(errno));
    struct csv csv = csv_new(file);
    f->writes = writes;
    f->count = 0;
    enum err e = end_batch(f); /* begins an empty one */
    if (!e)
        e = read_lines(f, &csv);
    csv_cleanup(&csv);
    (void)fclose(file);
    if (!e && f->faults)
        e = why_set(&f->c->why, ERR_INPUT, "%lld line%s wrong; %s", (long long)f->faults,
                    f->faults == 1 ? " is" : "s are",
                    writes ? "the file was changed meanwhile" : "nothing was imported");
    return e;
}

static enum err import_from_file(struct command_context *c)
{
    struct file_import f = {.c = c, .rows = import_rows_new()};
    enum err e = pass_over(&f, false);
    f.total = f.count;
    bool writes = !e && !option(c, "--dry-run");
    if (writes)
        e = pass_over(&f, true);
    import_rows_cleanup(&f.rows);
    arena_free(f.arena);
    if (e)
        return e;
    if (writes)
        printf("{\"imported\":%lld,\"skipped\":%lld}\n", (long long)f.made, (long long)(f.count - f.made));
    else
        printf("{\"imported\":0,\"due\":%lld}\n", (long long)f.total);
    return OK;
}

enum err customers_import(struct command_context *c)
{
    if (option(c, "--owners"))
        return customers_import_owners(c);
    return option(c, "--from-users") ? import_from_users(c) : import_from_file(c);
}
