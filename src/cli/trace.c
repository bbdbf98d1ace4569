#include <stdio.h>

#include "base/clock.h"
#include "base/email.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "recovery/audit.h"
#include "server/database.h"

/* What to look for: a correlation id as it is, an address by its keyed hash. */
static enum err subject_of(const struct settings *s, struct str word, struct pg_call *ret,
                           char hash[DIGEST_HEX_LEN + 1], struct why *why)
{
    *ret = (struct pg_call){.ask = &audit_trace, .args = {pg_null(), pg_null()}};
    if (str_is_uuid(word)) {
        ret->args[0] = pg_text(word.at);
        return OK;
    }
    AUTO(arena) struct arena *arena = arena_new(1024, 65536);
    struct str email;
    struct digest key;
    if (!arena || email_normalise(arena, word, &email))
        return why_set(why, ERR_INPUT, "\"%.*s\" is neither a correlation id nor an e-mail address", STR_ARGS(word));
    enum err e = database_identifier_key(s, &key, why);
    if (e)
        return e;
    struct counted counted = counted_by_email(TIER_EMAIL, &key, email);
    digest_hex(&counted.subject, hash);
    ret->args[1] = pg_text(hash);
    return OK;
}

static void print_rows(const struct pg_call *found)
{
    for (int row = 0; row < found->rows; row++) {
        struct str error = pg_get(found, row, 5), classification = pg_get(found, row, 6);
        printf("%s  %s  %-20s  %-9s", pg_get(found, row, 0).at, pg_get(found, row, 2).at, pg_get(found, row, 3).at,
               pg_get(found, row, 4).at);
        if (error.at)
            printf("  %s", error.at);
        if (classification.at)
            printf("  %s", classification.at);
        if (!str_eq(pg_get(found, row, 0), pg_get(found, row, 1)))
            printf("  (since %s)", pg_get(found, row, 1).at);
        putchar('\n');
    }
    printf("%d row%s\n", found->rows, found->rows == 1 ? "" : "s");
}

int command_trace(int argc, char **argv)
{
    struct option_rule options[] = {{"--config", true, NULL}};
    int words;
    if (options_read(argc, argv, options, COUNT_OF(options), 1, &words))
        return 2;
    if (words != 1) {
        fprintf(stderr, "reclaim trace: say which correlation id or e-mail address\n");
        return 2;
    }
    struct why why = {""};
    AUTO(settings) struct settings *s = NULL;
    AUTO(database) struct database db = {0};
    struct pg_call found;
    char hash[DIGEST_HEX_LEN + 1];
    enum err e = settings_load(options[0].value, &s, &why);
    if (e || (e = subject_of(s, str_of(argv[1]), &found, hash, &why)) || (e = database_open(s, &db, &why)) ||
        (e = database_same_key(s, db.pg, &why)))
        return command_failed("trace", &why);
    if ((e = pg_ask(db.pg, &found, clock_ns() + DATABASE_DEADLINE_NS))) {
        why_set(&why, e, "the log cannot be read (%s %s); is the schema up to date? (reclaim migrate)", err_name(e),
                found.sqlstate);
        return command_failed("trace", &why);
    }
    print_rows(&found);
    return 0;
}
