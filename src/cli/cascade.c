/* `reclaim cascade`: the participants of erasures, how far each is, and trying again. */
#include "erasure/cascade.h"

#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "erasure/storage.h"

#define PRESET_MAX 32 /* services in a ready set */

static enum err ask(struct command_context *c, struct pg_call *call)
{
    enum err e = command_ask(c, call);
    return e ? why_set(&c->why, e, "the cascade cannot be reached (%s %s); is the schema up to date? (reclaim migrate)",
                       err_name(e), call->sqlstate)
             : OK;
}

/* Which columns of its rows a participant empties, and which it has to keep; nothing for one whose rows are deleted. */
static struct str columns_of(struct arena *arena, const struct pg_call *list, int row)
{
    struct str emptied = pg_get(list, row, 10), kept = pg_get(list, row, 11);
    return arena_printf(arena, "%s%s%s%s", emptied.len ? ", empties " : "", emptied.at, kept.len ? ", keeps " : "",
                        kept.at);
}

static int find_participant(const struct pg_call *list, struct str name)
{
    int row = 0;
    while (row < list->rows && !str_eq(pg_get(list, row, 0), name))
        row++;
    return row;
}

/* A ready set: what fits takes part, and of the rest is said why not. Fails when nothing fits. */
static enum err add_preset(struct command_context *c)
{
    struct pg_call call = {.ask = &cascade_preset,
                           .args = {pg_text(option(c, "--preset")), pg_text(option(c, "--past") ? "true" : "false")}};
    struct {
        const char *name, *table, *lack;
    } services[PRESET_MAX];
    enum err e = ask(c, &call);
    if (e)
        return e;
    int count = call.rows < PRESET_MAX ? call.rows : PRESET_MAX, added = 0;
    for (int row = 0; row < count; row++) {
        services[row].name = arena_printf(c->arena, "%s", pg_get(&call, row, 0).at).at;
        services[row].table = arena_printf(c->arena, "%s", pg_get(&call, row, 1).at).at;
        services[row].lack =
            pg_is_null(&call, row, 2) ? NULL : arena_printf(c->arena, "%s", pg_get(&call, row, 2).at).at;
    }
    struct pg_call list = {.ask = &cascade_list};
    e = ask(c, &list);
    if (e)
        return e;
    for (int row = 0; row < count; row++) {
        const char *lack = services[row].lack;
        added += !lack;
        printf("%-14s %-32s %s%s\n", services[row].name, services[row].table, lack ? "NOT ADDED: " : "takes part",
               lack ? lack : columns_of(c->arena, &list, find_participant(&list, str_of(services[row].name))).at);
    }
    return added ? OK : why_set(&c->why, ERR_MISSING, "no table of the preset can take part");
}

/* A bucket of Supabase Storage. */
static enum err add_storage(struct command_context *c)
{
    const char *given = option(c, "--prefix") ? option(c, "--prefix") : STORAGE_PREFIX;
    bool slash = given[strlen(given) - 1] == '/';
    struct str prefix = arena_printf(c->arena, "%s%s", given, slash ? "" : "/");
    struct pg_call call = {.ask = &storage_add,
                           .args = {pg_text(word(c, 1)), pg_text(option(c, "--storage")), pg_text_or_null(prefix.at),
                                    pg_text(option(c, "--past") ? "true" : "false"),
                                    pg_text_or_null(option(c, "--label"))}};
    enum err e = prefix.at ? ask(c, &call) : why_set(&c->why, ERR_MEMORY, "no memory");
    if (e)
        return e;
    if (!pg_is_null(&call, 0, 0))
        return why_set(&c->why, ERR_INPUT, "%s", pg_get(&call, 0, 0).at);
    printf("%s takes part, with bucket %s, %s\n", word(c, 1), option(c, "--storage"), prefix.at);
    if (!c->settings->storage_url)
        printf("the servers need RECLAIM_STORAGE_URL and RECLAIM_STORAGE_KEY\n");
    return OK;
}

static enum err add(struct command_context *c)
{
    if (option(c, "--storage"))
        return add_storage(c);
    struct pg_call call = {.ask = &cascade_add,
                           .args = {pg_text(word(c, 1)), pg_text_or_null(option(c, "--table")),
                                    pg_text_or_null(option(c, "--column")), pg_text_or_null(option(c, "--soft-delete")),
                                    pg_text_or_null(option(c, "--scrub")), pg_text_or_null(option(c, "--page")),
                                    pg_text(option(c, "--past") ? "true" : "false"), pg_text_or_null(option(c, "--by")),
                                    pg_text_or_null(option(c, "--label"))}};
    enum err e = option(c, "--preset") ? OK : ask(c, &call);
    if (e || option(c, "--preset"))
        return e ? e : add_preset(c);
    if (!pg_is_null(&call, 0, 0))
        return why_set(&c->why, ERR_INPUT, "%s", pg_get(&call, 0, 0).at);
    struct pg_call list = {.ask = &cascade_list};
    e = ask(c, &list);
    if (e)
        return e;
    int row = find_participant(&list, str_of(word(c, 1)));
    printf("%s takes part%s\n", word(c, 1), columns_of(c->arena, &list, row).at);
    return OK;
}

/* "public.tags (customer_id), marked in tm_delete, empties label, pages of 1000; off", for people. */
static struct str description(struct arena *arena, const struct pg_call *rows, int row)
{
    const char *off = pg_get_bool(rows, row, 6) ? "" : "; off";
    const char *faulty = pg_is_null(rows, row, 7) ? "" : "; FAULTY: ", *fault = *faulty ? pg_get(rows, row, 7).at : "";
    struct str label = pg_get(rows, row, 9);
    const char *opens = label.len ? "\"" : "", *closes = label.len ? "\" " : "";
    if (str_eq(pg_get(rows, row, 1), STR("remote")))
        return arena_printf(arena, "%s%s%sremote%s%s%s", opens, label.at, closes, off, faulty, fault);
    if (str_eq(pg_get(rows, row, 1), STR("storage")))
        return arena_printf(arena, "%s%s%sbucket %s, %s%s", opens, label.at, closes, pg_get(rows, row, 12).at,
                            pg_get(rows, row, 13).at, off);
    bool customers = str_eq(pg_get(rows, row, 8), STR("customer"));
    struct str columns = columns_of(arena, rows, row);
    const char *verb = pg_get(rows, row, 4).len ? ", marked in " : columns.len ? "" : ", deleted";
    return arena_printf(arena, "%s%s%s%s (%s%s%s)%s%s%s, pages of %lld%s%s%s", opens, label.at, closes,
                        pg_get(rows, row, 2).at, pg_get(rows, row, 3).at, customers ? "" : ", by ",
                        customers ? "" : pg_get(rows, row, 8).at, verb, pg_get(rows, row, 4).at, columns.at,
                        (long long)pg_get_i64(rows, row, 5), off, faulty, fault);
}

/* As the columns of cascade_list, with what people read in their place. */
static const struct report_column participant_columns[] = {
    {.name = "name", .width = 24},
    {.name = "kind", .where = IN_DATA},
    {.name = "table", .where = IN_DATA},
    {.name = "column", .where = IN_DATA},
    {.name = "soft_delete", .where = IN_DATA},
    {.name = "page", .kind = REPORT_NUMBER, .where = IN_DATA},
    {.name = "enabled", .kind = REPORT_FLAG, .where = IN_DATA},
    {.name = "fault", .where = IN_DATA},
    {.name = "by", .where = IN_DATA},
    {.name = "label", .where = IN_DATA},
    {.name = "emptied", .where = IN_DATA},
    {.name = "kept", .where = IN_DATA},
    {.name = "bucket", .where = IN_DATA},
    {.name = "prefix", .where = IN_DATA},
    {.name = "what", .where = IN_TABLE},
};
static const struct report_shape participants_shape = {participant_columns, COUNT_OF(participant_columns), false, "",
                                                       "participant"};

static enum err list(struct command_context *c)
{
    struct pg_call rows = {.ask = &cascade_list};
    enum err e = ask(c, &rows);
    if (e)
        return e;
    AUTO(report) struct report *r = report_new(&participants_shape, c->format);
    for (int row = 0; row < rows.rows; row++) {
        bool pages = str_eq(pg_get(&rows, row, 1), STR("table"));
        for (int column = 0; column < 14; column++) {
            struct str text = pg_get(&rows, row, column);
            if (column == 6)
                report_flag(r, pg_get_bool(&rows, row, column));
            else if ((column >= 2 && text.len == 0) || (!pages && column == 5))
                report_null(r);
            else
                report_text(r, text);
        }
        report_text(r, description(c->arena, &rows, row));
    }
    return report_print(r, &c->why);
}

static const struct report_column status_columns[] = {
    {.name = "participant"},
    {.name = "pending", .kind = REPORT_NUMBER},
    {.name = "failed", .kind = REPORT_NUMBER},
    {.name = "done", .kind = REPORT_NUMBER},
    {.name = "rows", .kind = REPORT_NUMBER},
    {.name = "oldest"},
    {.name = "error"},
    {.name = "kept", .kind = REPORT_NUMBER},
};
static const struct report_shape status_shape = {status_columns, COUNT_OF(status_columns), true, "-", "participant"};

static enum err status_of_all(struct command_context *c)
{
    struct pg_call rows = {.ask = &cascade_status};
    enum err e = ask(c, &rows);
    if (e)
        return e;
    AUTO(report) struct report *r = report_new(&status_shape, c->format);
    report_rows(r, &rows);
    return report_print(r, &c->why);
}

static enum err status(struct command_context *c)
{
    if (c->word_count < 2)
        return status_of_all(c);
    struct pg_call call = {.ask = &cascade_ledger, .args = {pg_text(word(c, 1))}};
    enum err e = ask(c, &call);
    if (e)
        return e;
    if (pg_is_null(&call, 0, 0))
        return why_set(&c->why, ERR_MISSING, "there is no customer %s", word(c, 1));
    printf("%s\n", pg_get(&call, 0, 0).at);
    return OK;
}

static enum err redrive(struct command_context *c)
{
    struct pg_call call = {
        .ask = &cascade_redrive,
        .args = {pg_text_or_null(c->word_count > 1 ? word(c, 1) : NULL), pg_text_or_null(option(c, "--participant"))}};
    enum err e = ask(c, &call);
    if (!e)
        printf("{\"redriven\":%lld}\n", (long long)pg_get_i64(&call, 0, 0));
    return e;
}

static enum err switch_over(struct command_context *c)
{
    struct pg_call call = {.ask = &cascade_switch,
                           .args = {pg_text(word(c, 1)), pg_text(word(c, 0)), pg_text_or_null(option(c, "--reason"))}};
    enum err e = ask(c, &call);
    if (e)
        return e;
    if (!pg_is_null(&call, 0, 0))
        return why_set(&c->why, ERR_MISSING, "%s", pg_get(&call, 0, 0).at);
    printf("%s %s\n", word(c, 1), *word(c, 0) == 'e' ? "takes part" : *word(c, 0) == 'd' ? "is off" : "is removed");
    return OK;
}

static enum err rescan(struct command_context *c)
{
    const char *customer = c->word_count > 1 ? word(c, 1) : NULL;
    struct pg_call call = {.ask = &cascade_rescan, .args = {pg_text_or_null(customer)}};
    enum err e = ask(c, &call);
    if (e)
        return e;
    int64_t customers = pg_get_i64(&call, 0, 0);
    if (customer && customers == 0)
        return why_set(&c->why, ERR_MISSING, "no erasure of %s is complete", customer);
    printf("{\"rescanned\":%lld}\n", (long long)customers);
    return OK;
}

static const struct {
    const char *verb;
    enum err (*run)(struct command_context *c);
} verbs[] = {{"add", add},       {"list", list},           {"status", status},      {"redrive", redrive},
             {"rescan", rescan}, {"disable", switch_over}, {"enable", switch_over}, {"remove", switch_over}};

static const char *fault_of_preset(const struct command_context *c)
{
    static const char *const others[] = {"--table",  "--column", "--soft-delete", "--scrub",   "--page",
                                         "--remote", "--by",     "--label",       "--storage", "--prefix"};
    if (strcmp(option(c, "--preset"), "voip") != 0)
        return "the only preset is voip";
    if (c->word_count > 1)
        return "a preset has names of its own";
    for (size_t i = 0; i < COUNT_OF(others); i++)
        if (option(c, others[i]))
            return "only --past goes with --preset";
    return NULL;
}

static const char *fault_of_storage(const struct command_context *c)
{
    static const char *const others[] = {"--table", "--column", "--soft-delete", "--scrub",
                                         "--page",  "--remote", "--by"};
    const char *prefix = option(c, "--prefix");
    for (size_t i = 0; i < COUNT_OF(others); i++)
        if (option(c, others[i]))
            return "only --prefix, --label and --past go with --storage";
    if (!storage_bucket_is_sound(str_of(option(c, "--storage"))))
        return "--storage is the name of a bucket, of at most 100 bytes without a slash";
    if (prefix && !storage_prefix_is_sound(str_of(prefix)))
        return "--prefix is a folder with {user} for the user's id, such as {user}/ or avatars/{user}/";
    return NULL;
}

static const char *fault_of_add(const struct command_context *c)
{
    const char *table = option(c, "--table"), *column = option(c, "--column"), *page = option(c, "--page");
    const char *soft = option(c, "--soft-delete"), *scrub = option(c, "--scrub"), *remote = option(c, "--remote");
    const char *by = option(c, "--by"), *label = option(c, "--label");
    int64_t rows;
    if (option(c, "--preset"))
        return fault_of_preset(c);
    if (by && strcmp(by, "customer") != 0 && strcmp(by, "user") != 0)
        return "--by is customer or user: whose id the column holds";
    if (by && remote)
        return "--by goes with --table";
    if (label && (!str_is_utf8(str_of(label)) || strlen(label) > 200))
        return "--label is a text of at most 200 bytes";
    if (!participant_name_is_sound(str_of(word(c, 1))))
        return "give the participant a name: lower-case letters, digits, - _ .";
    if (option(c, "--storage"))
        return fault_of_storage(c);
    if (option(c, "--prefix"))
        return "--prefix goes with --storage";
    if ((remote != NULL) == (table != NULL))
        return "say where it is: --table NAME --column NAME, --storage BUCKET, or --remote";
    if ((table != NULL) != (column != NULL))
        return "--table NAME and --column NAME, which holds the customer's id, go together";
    if (remote && (soft || scrub || page))
        return "a remote participant has neither columns nor pages";
    if (scrub && !soft)
        return "--scrub empties columns of rows that --soft-delete keeps";
    if (page && str_to_i64(str_of(page), 1, 100000, &rows))
        return "--page is a number of rows from 1 to 100000";
    return NULL;
}

/* What is wrong with the arguments; NULL when nothing is. */
static const char *fault_of(const struct command_context *c)
{
    static const char *const of_add[] = {"--table", "--column", "--soft-delete", "--scrub",  "--page",    "--remote",
                                         "--past",  "--by",     "--label",       "--preset", "--storage", "--prefix"};
    const char *verb = word(c, 0);
    bool adds = strcmp(verb, "add") == 0, lists = strcmp(verb, "list") == 0;
    bool redrives = strcmp(verb, "redrive") == 0, reports = strcmp(verb, "status") == 0;
    bool rescans = strcmp(verb, "rescan") == 0;
    bool switches = strcmp(verb, "disable") == 0 || strcmp(verb, "enable") == 0 || strcmp(verb, "remove") == 0;
    if (!adds && !redrives && !lists && !reports && !rescans && !switches)
        return "say add, list, status, redrive, rescan, disable, enable or remove";
    for (size_t i = 0; !adds && i < COUNT_OF(of_add); i++)
        if (option(c, of_add[i]))
            return "only add takes these options";
    if (option(c, "--reason") && strcmp(verb, "disable") != 0)
        return "--reason goes with disable";
    if (option(c, "--reason") && !is_reason(option(c, "--reason"), KEPT_REASON_MAX))
        return "--reason takes a text of up to 200 bytes";
    if (option(c, "--participant") && !redrives)
        return "only redrive takes --participant";
    if (c->format_given && !lists && (!reports || c->word_count > 1))
        return "--format goes with list, and with status of all";
    if (switches)
        return participant_name_is_sound(str_of(word(c, 1))) ? NULL
                                                             : "which participant? reclaim cascade list has the names";
    if (!adds && c->word_count > 1 && (lists || !str_is_uuid(str_of(word(c, 1)))))
        return "that is no customer's id, a UUID";
    return adds ? fault_of_add(c) : NULL;
}

enum err cascade_read(struct command_context *c)
{
    const char *fault = fault_of(c);
    return fault ? why_set(&c->why, ERR_INPUT, "%s", fault) : OK;
}

enum err cascade_command(struct command_context *c)
{
    for (size_t i = 0; i < COUNT_OF(verbs); i++)
        if (strcmp(word(c, 0), verbs[i].verb) == 0)
            return verbs[i].run(c);
    return ERR_INPUT;
}
