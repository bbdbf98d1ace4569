#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "ops/commands.h"
#include "ops/database.h"
#include "ops/options.h"

static const char *const columns[] = {"id", "email", "created_at", "verified", "last_sign_in_at"};

static struct str cell(const struct pg_call *found, int row, int column)
{
    if (column == 3)
        return pg_get_bool(found, row, column) ? STR("yes") : STR("no");
    struct str value = pg_get(found, row, column);
    return value.at ? value : STR("");
}

static void print_table(const struct pg_call *found)
{
    int width[COUNT_OF(columns)];
    for (int c = 0; c < (int)COUNT_OF(columns); c++) {
        width[c] = (int)strlen(columns[c]);
        for (int r = 0; r < found->rows; r++)
            if ((int)cell(found, r, c).len > width[c])
                width[c] = (int)cell(found, r, c).len;
        printf("%s%-*s", c ? "  " : "", width[c], columns[c]);
    }
    putchar('\n');
    for (int r = 0; r < found->rows; r++) {
        for (int c = 0; c < (int)COUNT_OF(columns); c++) {
            struct str value = cell(found, r, c);
            printf("%s%-*.*s", c ? "  " : "", width[c], STR_ARGS(value));
        }
        putchar('\n');
    }
    printf("%d orphaned account%s\n", found->rows, found->rows == 1 ? "" : "s");
}

static void print_csv_cell(struct str value)
{
    bool plain = true;
    for (size_t i = 0; i < value.len; i++)
        if (strchr("\",\r\n", value.at[i]))
            plain = false;
    if (plain) {
        printf("%.*s", STR_ARGS(value));
        return;
    }
    putchar('"');
    for (size_t i = 0; i < value.len; i++) {
        if (value.at[i] == '"')
            putchar('"');
        putchar(value.at[i]);
    }
    putchar('"');
}

static void print_csv(const struct pg_call *found)
{
    for (size_t c = 0; c < COUNT_OF(columns); c++)
        printf("%s%s", c ? "," : "", columns[c]);
    printf("\r\n");
    for (int r = 0; r < found->rows; r++) {
        for (int c = 0; c < (int)COUNT_OF(columns); c++) {
            if (c)
                putchar(',');
            print_csv_cell(cell(found, r, c));
        }
        printf("\r\n");
    }
}

static void print_json(const struct pg_call *found)
{
    printf("[");
    for (int r = 0; r < found->rows; r++) {
        AUTO(buf) struct buf out = buf_new(4096);
        struct json_writer w = json_to(&out);
        json_open(&w, '{');
        for (int c = 0; c < (int)COUNT_OF(columns); c++) {
            json_key(&w, columns[c]);
            if (c == 3)
                json_bool(&w, pg_get_bool(found, r, c));
            else
                json_str(&w, pg_get(found, r, c));
        }
        json_close(&w, '}');
        printf("%s%.*s", r ? ",\n " : "", STR_ARGS(buf_str(&out)));
    }
    printf("]\n");
}

/* A report over tables that are missing or partly hidden would call owners orphans. */
static void note_hindrance(void *context, const char *sentence)
{
    struct why *why = context;
    if (!strstr(sentence, "no index") && !strstr(sentence, "foreign key"))
        why_set(why, ERR_DATABASE, "%s", sentence);
}

static void (*printer_named(const char *name))(const struct pg_call *)
{
    return strcmp(name, "table") == 0  ? print_table
           : strcmp(name, "csv") == 0  ? print_csv
           : strcmp(name, "json") == 0 ? print_json
                                       : NULL;
}

int command_orphans(int argc, char **argv)
{
    struct option_rule options[] = {{"--config", true, NULL}, {"--older-than", true, NULL}, {"--format", true, NULL}};
    if (options_read(argc, argv, options, COUNT_OF(options), 0, NULL))
        return 2;
    const char *age = options[1].value ? options[1].value : "7d";
    void (*print)(const struct pg_call *) = printer_named(options[2].value ? options[2].value : "table");
    int64_t age_ms;
    if (!print || str_to_duration_ms(str_of(age), &age_ms)) {
        fprintf(stderr,
                print ? "reclaim orphans: \"%s\" is not a duration such as 12h or 7d\n"
                      : "reclaim orphans: \"%s\" is not table, csv or json\n",
                print ? age : options[2].value);
        return 2;
    }

    struct why why = {""}, hindrance = {""};
    AUTO(settings) struct settings *s = NULL;
    AUTO(database) struct database db = {0};
    struct orphan_statements orphans = {0};
    enum err e = settings_load(options[0].value, &s, &why);
    if (e || (e = database_open(s, &db, &why)) ||
        (e = database_check_ownership(db.pg, s->ownership.at, s->ownership.count, note_hindrance, &hindrance, &why)))
        return command_failed("orphans", &why);
    if (hindrance.text[0])
        return command_failed("orphans", &hindrance);
    if ((e = orphan_statements_write(s->ownership.at, s->ownership.count, &orphans)))
        return command_failed("orphans", &(struct why){"no memory"});
    struct pg_call found = {.ask = &orphans.list, .args = {pg_i64(age_ms / 1000)}};
    if ((e = pg_ask(db.pg, &found, clock_ns() + 10 * DATABASE_DEADLINE_NS)) == OK)
        print(&found);
    else
        why_set(&why, e, "the look-up failed (%s %s); reclaim doctor checks the tables of RECLAIM_OWNERSHIP",
                err_name(e), found.sqlstate);
    orphan_statements_free(&orphans);
    return e ? command_failed("orphans", &why) : 0;
}
