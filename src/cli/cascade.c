/* `reclaim cascade`: who takes part, how far each is, and trying again. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "erasure/cascade.h"
#include "server/database.h"

struct cascade_options {
    const char *verb, *word; /* `word`: a participant's name, or a customer; NULL when not given */
    const char *table, *column, *soft, *scrub, *page, *participant;
    bool remote, past;
};

static struct pg_arg text_or_null(const char *z)
{
    return z ? pg_text(z) : pg_null();
}

static enum err ask(struct pg *pg, struct pg_call *call, struct why *why)
{
    enum err e = pg_ask(pg, call, clock_ns() + DATABASE_DEADLINE_NS);
    return e ? why_set(why, e, "the cascade cannot be reached (%s %s); is the schema up to date? (reclaim migrate)",
                       err_name(e), call->sqlstate)
             : OK;
}

static enum err add(const struct cascade_options *o, struct pg *pg, struct why *why)
{
    struct pg_call call = {.ask = &cascade_add,
                           .args = {pg_text(o->word), text_or_null(o->table), text_or_null(o->column),
                                    text_or_null(o->soft), text_or_null(o->scrub), text_or_null(o->page),
                                    pg_text(o->past ? "true" : "false")}};
    enum err e = ask(pg, &call, why);
    if (e)
        return e;
    if (!pg_is_null(&call, 0, 0))
        return why_set(why, ERR_INPUT, "%s", pg_get(&call, 0, 0).at);
    printf("%s takes part\n", o->word);
    return OK;
}

static enum err list(const struct cascade_options *o, struct pg *pg, struct why *why)
{
    (void)o;
    struct pg_call call = {.ask = &cascade_list};
    enum err e = ask(pg, &call, why);
    for (int i = 0; !e && i < call.rows; i++) {
        bool remote = str_eq(pg_get(&call, i, 1), STR("remote"));
        printf("%-24s ", pg_get(&call, i, 0).at);
        if (remote)
            printf("remote");
        else
            printf("%s (%s)%s%s, pages of %lld", pg_get(&call, i, 2).at, pg_get(&call, i, 3).at,
                   pg_get(&call, i, 4).len ? ", marked in " : ", deleted", pg_get(&call, i, 4).at,
                   (long long)pg_get_i64(&call, i, 5));
        printf("%s%s%s\n", pg_get_bool(&call, i, 6) ? "" : "; off",
               pg_is_null(&call, i, 7) ? "" : "; FAULTY: ", pg_is_null(&call, i, 7) ? "" : pg_get(&call, i, 7).at);
    }
    if (!e)
        printf("%d participant%s\n", call.rows, call.rows == 1 ? "" : "s");
    return e;
}

static enum err status(const struct cascade_options *o, struct pg *pg, struct why *why)
{
    struct pg_call call = {.ask = o->word ? &cascade_ledger : &cascade_status,
                           .args = {o->word ? pg_text(o->word) : pg_null()}};
    enum err e = ask(pg, &call, why);
    if (e)
        return e;
    if (o->word && pg_is_null(&call, 0, 0))
        return why_set(why, ERR_MISSING, "there is no customer %s", o->word);
    if (o->word) {
        printf("%s\n", pg_get(&call, 0, 0).at);
        return OK;
    }
    printf("%-24s %9s %9s %9s %12s  %-27s  %s\n", "participant", "pending", "failed", "done", "rows", "oldest",
           "error");
    for (int i = 0; i < call.rows; i++)
        printf("%-24s %9lld %9lld %9lld %12lld  %-27s  %s\n", pg_get(&call, i, 0).at,
               (long long)pg_get_i64(&call, i, 1), (long long)pg_get_i64(&call, i, 2),
               (long long)pg_get_i64(&call, i, 3), (long long)pg_get_i64(&call, i, 4),
               pg_is_null(&call, i, 5) ? "-" : pg_get(&call, i, 5).at,
               pg_is_null(&call, i, 6) ? "-" : pg_get(&call, i, 6).at);
    return OK;
}

static enum err redrive(const struct cascade_options *o, struct pg *pg, struct why *why)
{
    struct pg_call call = {.ask = &cascade_redrive, .args = {text_or_null(o->word), text_or_null(o->participant)}};
    enum err e = ask(pg, &call, why);
    if (!e)
        printf("{\"redriven\":%lld}\n", (long long)pg_get_i64(&call, 0, 0));
    return e;
}

static const struct {
    const char *verb;
    enum err (*run)(const struct cascade_options *o, struct pg *pg, struct why *why);
} verbs[] = {{"add", add}, {"list", list}, {"status", status}, {"redrive", redrive}};

/* What is wrong with the order as it was typed; NULL when nothing is. */
static const char *complaint(const struct cascade_options *o)
{
    bool adds = strcmp(o->verb, "add") == 0, redrives = strcmp(o->verb, "redrive") == 0;
    int64_t page;
    if (!adds && !redrives && strcmp(o->verb, "list") != 0 && strcmp(o->verb, "status") != 0)
        return "say add, list, status or redrive";
    if (!adds && (o->table || o->column || o->soft || o->scrub || o->page || o->remote || o->past))
        return "only add takes these options";
    if (o->participant && !redrives)
        return "only redrive takes --participant";
    if (adds && (!o->word || !participant_name_is_sound(str_of(o->word))))
        return "give the participant a name: lower-case letters, digits, - _ .";
    if (adds && o->remote == (o->table != NULL))
        return "say where it is: either --table NAME --column NAME, or --remote";
    if (adds && (o->table != NULL) != (o->column != NULL))
        return "--table NAME and --column NAME, which holds the customer's id, go together";
    if (adds && o->remote && (o->soft || o->scrub || o->page))
        return "a remote participant has neither columns nor pages";
    if (o->scrub && !o->soft)
        return "--scrub empties columns of rows that --soft-delete keeps";
    if (o->page && str_to_i64(str_of(o->page), 1, 100000, &page))
        return "--page is a number of rows from 1 to 100000";
    if (!adds && o->word && (strcmp(o->verb, "list") == 0 || !str_is_uuid(str_of(o->word))))
        return "that is no customer's id, a UUID";
    return NULL;
}

int command_cascade(int argc, char **argv)
{
    struct option_rule options[] = {
        {"--config", true, NULL},      {"--table", true, NULL}, {"--column", true, NULL},
        {"--soft-delete", true, NULL}, {"--scrub", true, NULL}, {"--page", true, NULL},
        {"--remote", false, NULL},     {"--past", false, NULL}, {"--participant", true, NULL}};
    int words;
    if (options_read(argc, argv, options, COUNT_OF(options), 2, &words))
        return 2;
    struct cascade_options o = {.verb = words ? argv[1] : "",
                                .word = words == 2 ? argv[2] : NULL,
                                .table = options[1].value,
                                .column = options[2].value,
                                .soft = options[3].value,
                                .scrub = options[4].value,
                                .page = options[5].value,
                                .remote = options[6].value != NULL,
                                .past = options[7].value != NULL,
                                .participant = options[8].value};
    const char *wrong = complaint(&o);
    if (wrong) {
        fprintf(stderr, "reclaim cascade: %s\n", wrong);
        return 2;
    }
    struct why why = {""};
    AUTO(settings) struct settings *s = NULL;
    AUTO(database) struct database db = {0};
    enum err e = settings_load(options[0].value, &s, &why);
    if (e || (e = database_open(s, &db, &why)))
        return command_failed("cascade", &why);
    for (size_t i = 0; i < COUNT_OF(verbs); i++)
        if (strcmp(o.verb, verbs[i].verb) == 0)
            e = verbs[i].run(&o, db.pg, &why);
    return e ? command_failed("cascade", &why) : 0;
}
