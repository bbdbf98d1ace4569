/* `reclaim customers`: lists of customers, and the members of one. src/cli/import.c has the import. */
#include "cli/customers.h"

#include <string.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "customers/customers.h"
#include "customers/members.h"
#include "server/database.h"

#define LIST_PAGE 1000
#define TEXT_MAX 400

static const struct actor by_operator = {.kind = "operator"};

/* As the columns of customers_rows. */
static const struct report_column customer_columns[] = {
    {.name = "id"},
    {.name = "name"},
    {.name = "email"},
    {.name = "status"},
    {.name = "owner_user_id", .where = IN_DATA},
    {.name = "tm_create", .where = IN_DATA},
    {.name = "tm_deletion_scheduled"},
    {.name = "held_since"},
    {.name = "hold_reason"},
};
static const struct report_shape customers_shape = {customer_columns, COUNT_OF(customer_columns), true, "-",
                                                    "customer"};

/* As the columns of members_list. */
static const struct report_column member_columns[] = {
    {.name = "user_id"}, {.name = "role"}, {.name = "email"}, {.name = "created_at"}};
static const struct report_shape members_shape = {member_columns, COUNT_OF(member_columns), true, "-", "member"};

static enum err cannot_be_read(struct command_context *c, enum err e, const struct pg_call *call)
{
    return why_set(&c->why, e, "the customers cannot be read (%s %s); is the schema up to date? (reclaim migrate)",
                   err_name(e), call->sqlstate);
}

/* Adds page after page to a report. `page` has its arguments but for `after` and the limit, which are the last two; the
 * first column is what the next page begins behind. */
static enum err add_pages(struct command_context *c, struct report *r, struct pg_call *page)
{
    char after[37] = UUID_NIL;
    int last = page->ask->params - 1;
    for (;;) {
        page->args[last - 1] = pg_text(after);
        page->args[last] = pg_i64(LIST_PAGE);
        enum err e = command_ask(c, page);
        if (e)
            return cannot_be_read(c, e, page);
        report_rows(r, page);
        if (page->rows < LIST_PAGE)
            return OK;
        if (str_copy(pg_get(page, page->rows - 1, 0), after, sizeof after))
            return why_set(&c->why, ERR_FULL, "an id does not fit its buffer");
    }
}

static enum err list(struct command_context *c)
{
    AUTO(report) struct report *r = report_new(&customers_shape, c->format);
    struct pg_call page = {.ask = &customers_rows,
                           .args = {pg_text_or_null(option(c, "--status")),
                                    pg_text(option(c, "--held") ? "true" : "false"),
                                    pg_text_or_null(option(c, "--q"))}};
    enum err e = add_pages(c, r, &page);
    return e ? e : report_print(r, &c->why);
}

static enum err list_members(struct command_context *c)
{
    AUTO(report) struct report *r = report_new(&members_shape, c->format);
    struct pg_call known = {.ask = &customer_show_to_admin, .args = {pg_text(word(c, 1))}};
    struct pg_call page = {.ask = &members_list, .args = {pg_text(word(c, 1))}};
    enum err e = command_ask(c, &known);
    if (e)
        return cannot_be_read(c, e, &known);
    if (known.rows == 0)
        return why_set(&c->why, ERR_MISSING, "there is no customer %s", word(c, 1));
    e = add_pages(c, r, &page);
    return e ? e : report_print(r, &c->why);
}

static enum err change_once(struct command_context *c, struct member_change *ret)
{
    int64_t deadline_ns = clock_ns() + DATABASE_DEADLINE_NS;
    if (strcmp(word(c, 2), "add") == 0)
        return member_add(c->pg, word(c, 1), word(c, 3), option(c, "--role"), &by_operator, deadline_ns, c->arena, ret);
    return member_remove(c->pg, word(c, 1), word(c, 3), &by_operator, deadline_ns, c->arena, ret);
}

static enum err change_member(struct command_context *c)
{
    struct member_change change = {0};
    enum err e = change_once(c, &change);
    for (int tries = 1; e == ERR_CONFLICT && tries < 5; tries++)
        e = change_once(c, &change);
    if (e)
        return why_set(&c->why, e, "nothing was changed (%s); is the schema up to date? (reclaim migrate)",
                       err_name(e));
    switch (change.outcome) {
    case MEMBER_DONE:
    case MEMBER_UNCHANGED:
        print_after_lease(change.committed_ns, change.object);
        return OK;
    case MEMBER_NOT_ONE:
        return why_set(&c->why, ERR_MISSING, "%s is no member of customer %s", word(c, 3), word(c, 1));
    case MEMBER_NO_CUSTOMER:
        return why_set(&c->why, ERR_MISSING, "there is no customer %s", word(c, 1));
    case MEMBER_CUSTOMER_DELETED:
        return why_set(&c->why, ERR_INPUT, "customer %s is deleted: it gets no members", word(c, 1));
    case MEMBER_NO_USER:
        return why_set(&c->why, ERR_MISSING, "there is no user %s in auth.users", word(c, 3));
    }
    return ERR_INPUT;
}

/* --- what is wrong with the arguments; NULL when nothing is --- */

static const char *fault_of_list(const struct command_context *c)
{
    const char *status = option(c, "--status"), *text = option(c, "--q");
    enum customer_state state;
    if (c->word_count > 1)
        return "list takes options only";
    if (status && state_parse(str_of(status), &state))
        return "--status is active, frozen or deleted";
    if (text && (!*text || strlen(text) > TEXT_MAX || !str_is_utf8(str_of(text))))
        return "--q wants an id, or the beginning of a name or address, up to 400 bytes";
    return NULL;
}

static const char *fault_of_members(const struct command_context *c)
{
    const char *verb = word(c, 2), *role = option(c, "--role");
    bool adds = strcmp(verb, "add") == 0;
    if (!str_is_uuid(str_of(word(c, 1))))
        return "which customer? Give its id, a UUID";
    if (*verb && !adds && strcmp(verb, "remove") != 0)
        return "say add or remove, and a user's id";
    if (*verb && !str_is_uuid(str_of(word(c, 3))))
        return "which user? Give its id in auth.users, a UUID";
    if (role && !adds)
        return "only members ID add takes --role";
    if (role && !member_role_is_sound(str_of(role)))
        return "--role is 1 to 63 of a-z, 0-9, _ and -, beginning with a letter, and not owner";
    if (*verb && c->format_given)
        return "--format is for lists: table, csv or json";
    return NULL;
}

static const char *fault_of_import(const struct command_context *c)
{
    bool owners = option(c, "--owners") != NULL, users = option(c, "--from-users") != NULL;
    if (option(c, "--query") && (!owners || c->word_count == 2))
        return "--query goes with --owners, and without a file";
    if (c->word_count > 2 || (owners ? users : users == (c->word_count == 2)))
        return "import takes either --from-users or the name of a CSV file";
    return c->format_given ? "--format is for lists: table, csv or json" : NULL;
}

static const struct {
    const char *verb;
    const char *(*fault_of)(const struct command_context *c);
    enum err (*run)(struct command_context *c);
    const char *const options[5]; /* that no other verb takes */
} verbs[] = {{"list", fault_of_list, list, {"--status", "--held", "--q"}},
             {"members", fault_of_members, list_members, {"--role"}},
             {"import", fault_of_import, customers_import, {"--from-users", "--dry-run", "--owners", "--query"}}};

static size_t verb_of(const struct command_context *c)
{
    size_t at = 0;
    while (at < COUNT_OF(verbs) && strcmp(verbs[at].verb, word(c, 0)) != 0)
        at++;
    return at;
}

static const char *fault_of(const struct command_context *c)
{
    size_t verb = verb_of(c);
    if (verb == COUNT_OF(verbs))
        return "say list, members or import";
    for (size_t other = 0; other < COUNT_OF(verbs); other++)
        for (size_t i = 0; other != verb && verbs[other].options[i]; i++)
            if (option(c, verbs[other].options[i]))
                return "that option belongs to another of list, members and import";
    return verbs[verb].fault_of(c);
}

enum err customers_read(struct command_context *c)
{
    const char *fault = fault_of(c);
    return fault ? why_set(&c->why, ERR_INPUT, "%s (see reclaim customers --help)", fault) : OK;
}

enum err customers_command(struct command_context *c)
{
    bool changes = strcmp(word(c, 0), "members") == 0 && c->word_count > 2;
    return changes ? change_member(c) : verbs[verb_of(c)].run(c);
}
