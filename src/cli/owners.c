/* `reclaim customers import --owners`: who owns the customers that have no owner, by address, from a CSV file or a query. */
#include "customers/owners.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/csv.h"
#include "cli/customers.h"
#include "customers/import.h"
#include "pg/arrays.h"
#include "server/database.h"

#define ARRAY_CEILING ((size_t)1 << 20)

static const struct actor by_operator = {.kind = "operator"};

static int64_t deadline(void)
{
    return clock_ns() + 10 * DATABASE_DEADLINE_NS;
}

/* The pairs of a batch, as array literals. */
struct pairs {
    struct buf customers, users;
    int count;
};

static enum err add_batch(struct command_context *c, struct pairs *p)
{
    if (!array_end(&p->customers) || !array_end(&p->users))
        return why_set(&c->why, ERR_MEMORY, "no memory for the lines");
    enum err e = p->count ? owners_add(c->pg, buf_str(&p->customers).at, buf_str(&p->users).at, deadline()) : OK;
    buf_clear(&p->customers);
    buf_clear(&p->users);
    p->count = 0;
    return e ? why_set(&c->why, e, "the lines cannot be taken (%s); nothing was changed", err_name(e)) : OK;
}

static enum err read_pairs(struct command_context *c, struct csv *csv, struct pairs *p)
{
    struct csv_record record;
    enum err e = csv_next(csv, &record, &c->why);
    if (e == ERR_MISSING || (!e && (record.count != 2 || !str_eq(str_trim(record.fields[0]), STR("customer_id")) ||
                                    !str_eq(str_trim(record.fields[1]), STR("owner_user_id")))))
        return why_set(&c->why, ERR_INPUT, "the first line names the columns: customer_id,owner_user_id");
    while (!e && !(e = csv_next(csv, &record, &c->why))) {
        struct str customer = str_trim(record.fields[0]),
                   user = record.count == 2 ? str_trim(record.fields[1]) : STR("");
        if (record.count != 2 || !str_is_uuid(customer) || !str_is_uuid(user))
            return why_set(&c->why, ERR_INPUT, "line %lld is no pair of UUIDs; nothing was changed",
                           (long long)record.line);
        array_add_text(&p->customers, customer);
        array_add_text(&p->users, user);
        if (++p->count == IMPORT_BATCH)
            e = add_batch(c, p);
    }
    return e == ERR_MISSING ? add_batch(c, p) : e;
}

static enum err find_in_file(struct command_context *c, const char *path)
{
    enum err e = owners_find_none(c->pg, deadline(), &c->why);
    if (e)
        return e;
    FILE *file = fopen(path, "re");
    if (!file)
        return why_set(&c->why, ERR_MISSING, "%s cannot be read: %s", path, strerror(errno));
    struct csv csv = csv_new(file);
    struct pairs pairs = {.customers = buf_new(ARRAY_CEILING), .users = buf_new(ARRAY_CEILING)};
    e = read_pairs(c, &csv, &pairs);
    buf_free(&pairs.customers);
    buf_free(&pairs.users);
    csv_cleanup(&csv);
    (void)fclose(file);
    return e;
}

enum err customers_import_owners(struct command_context *c)
{
    int64_t due = 0, all = 0, written = 0;
    enum err e =
        c->word_count > 1 ? find_in_file(c, word(c, 1)) : owners_find(c->pg, option(c, "--query"), deadline(), &c->why);
    if (e)
        return e;
    e = owners_count(c->pg, deadline(), &due, &all);
    bool left = !e && !option(c, "--dry-run");
    if (!e && !left) {
        printf("{\"imported\":0,\"due\":%lld}\n", (long long)due);
        return OK;
    }
    while (!e && left)
        e = owners_write(c->pg, &by_operator, deadline(), &written, &left);
    if (e)
        return why_set(&c->why, e, "it ended early (%s); start it again: owners written so far stay", err_name(e));
    printf("{\"imported\":%lld,\"skipped\":%lld}\n", (long long)written, (long long)(all - written));
    return OK;
}
