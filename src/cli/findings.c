#include "cli/findings.h"

#include <stdio.h>

#define LINE_WIDTH 80

enum { COLUMN_KIND, COLUMN_TABLE, COLUMN_SUBJECT, COLUMN_WHAT, COLUMN_ADVICE, COLUMN_LOCK };

static bool continues_character(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

/* Names come from the database: no control character reaches the terminal. */
static void print_word(struct str word)
{
    for (size_t i = 0; i < word.len; i++)
        if ((unsigned char)word.at[i] < 0x20 || word.at[i] == 0x7f)
            printf("\\x%02x", (unsigned)word.at[i]);
        else
            putchar(word.at[i]);
}

/* How many bytes of the text fit into a line, at a blank if there is one, and never within a character. */
static size_t fitting(struct str text, int width)
{
    size_t at = 0, blank = 0;
    for (int characters = 0; at < text.len; at++) {
        if (!continues_character(text.at[at]) && characters++ == width)
            return blank ? blank : at;
        if (text.at[at] == ' ' || text.at[at] == '\n')
            blank = at;
    }
    return at;
}

static void print_paragraph(int indent, const char *label, struct str text)
{
    int used = printf("%*s%s", indent, "", label);
    while (text.len) {
        size_t len = fitting(text, LINE_WIDTH - used);
        print_word((struct str){text.at, len});
        text = str_trim((struct str){text.at + len, text.len - len});
        printf("\n");
        if (text.len)
            used = printf("%*s", indent, "");
    }
}

static bool is_about_locks(const struct pg_call *rows, int row)
{
    return str_eq(pg_get(rows, row, COLUMN_SUBJECT), STR("table")) && !pg_is_null(rows, row, COLUMN_LOCK) &&
           str_eq(pg_get(rows, row, COLUMN_KIND), STR("change"));
}

static void print_finding(const struct pg_call *rows, int row)
{
    struct str table = pg_get(rows, row, COLUMN_TABLE), subject = pg_get(rows, row, COLUMN_SUBJECT);
    char heading[512];
    (void)snprintf(heading, sizeof heading, "%.*s, %.*s", STR_ARGS(table), STR_ARGS(subject));
    print_paragraph(2, "", str_of(heading));
    print_paragraph(4, "", pg_get(rows, row, COLUMN_WHAT));
    if (!pg_is_null(rows, row, COLUMN_ADVICE))
        print_paragraph(4, "What to do: ", pg_get(rows, row, COLUMN_ADVICE));
}

static int print_kind(const struct pg_call *rows, struct str kind, const char *heading)
{
    int count = 0;
    for (int i = 0; i < rows->rows; i++) {
        if (!str_eq(pg_get(rows, i, COLUMN_KIND), kind) || is_about_locks(rows, i))
            continue;
        if (count++ == 0)
            printf("%s\n", heading);
        print_finding(rows, i);
    }
    if (count)
        printf("\n");
    return count;
}

static void print_locks(const struct pg_call *rows)
{
    int64_t sum = 0;
    int tables = 0;
    for (int i = 0; i < rows->rows; i++) {
        if (!is_about_locks(rows, i))
            continue;
        if (tables++ == 0)
            printf("Locks\n");
        print_paragraph(2, "", pg_get(rows, i, COLUMN_TABLE));
        print_paragraph(4, "", pg_get(rows, i, COLUMN_WHAT));
        sum += pg_get_i64(rows, i, COLUMN_LOCK);
    }
    if (tables)
        printf("  exclusive locks of about %lld ms in all\n\n", (long long)sum);
}

void print_findings(const struct pg_call *rows)
{
    int refused = print_kind(rows, STR("refused"), "Refused"), changes = print_kind(rows, STR("change"), "Changes"),
        notes = print_kind(rows, STR("note"), "Notes");
    print_locks(rows);
    printf("%d refused, %d change%s, %d note%s\n", refused, changes, changes == 1 ? "" : "s", notes,
           notes == 1 ? "" : "s");
}
