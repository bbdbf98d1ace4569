#include "cli/report.h"

#include <inttypes.h>
#include <libsmartcols.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"

#define TEXT_CEILING ((size_t)1 << 30)

struct cell {
    size_t at, len; /* in the text of the report; `at` is NONE for a null */
};
#define NONE SIZE_MAX

struct report {
    const struct report_shape *shape;
    enum report_format format;
    struct buf text; /* of all cells, each with a NUL behind it */
    struct cell *cells;
    size_t count, capacity;
    bool began; /* CSV: the header was printed */
    bool failed;
};

enum err report_format_named(const char *name, enum report_format *ret)
{
    static const char *const names[] = {[REPORT_TABLE] = "table", [REPORT_CSV] = "csv", [REPORT_JSON] = "json"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (strcmp(names[i], name) == 0) {
            *ret = (enum report_format)i;
            return OK;
        }
    return ERR_INPUT;
}

struct report *report_new(const struct report_shape *shape, enum report_format format)
{
    struct report *r = calloc(1, sizeof *r);
    if (r)
        *r = (struct report){.shape = shape, .format = format, .text = buf_new(TEXT_CEILING)};
    return r;
}

void report_cleanup(struct report **r)
{
    if (!*r)
        return;
    buf_free(&(*r)->text);
    free((*r)->cells);
    free(*r);
    *r = NULL;
}

/* --- filling --- */

static void add(struct report *r, struct cell cell)
{
    if (r->count == r->capacity) {
        size_t capacity = r->capacity ? 2 * r->capacity : 64;
        struct cell *cells = reallocarray(r->cells, capacity, sizeof *cells);
        if (!cells) {
            r->failed = true;
            return;
        }
        r->cells = cells;
        r->capacity = capacity;
    }
    r->cells[r->count++] = cell;
}

void report_null(struct report *r)
{
    if (r && !r->failed)
        add(r, (struct cell){NONE, 0});
}

void report_text(struct report *r, struct str text)
{
    if (!text.at)
        report_null(r);
    if (!r || r->failed || !text.at)
        return;
    size_t at = r->text.len;
    buf_add(&r->text, text);
    buf_add(&r->text, (struct str){"", 1});
    r->failed = r->text.failed != OK;
    if (!r->failed)
        add(r, (struct cell){at, text.len});
}

void report_number(struct report *r, int64_t number)
{
    char digits[24];
    (void)snprintf(digits, sizeof digits, "%" PRId64, number);
    report_text(r, str_of(digits));
}

void report_flag(struct report *r, bool flag)
{
    report_text(r, flag ? STR("yes") : STR("no"));
}

void report_rows(struct report *r, const struct pg_call *rows)
{
    for (int row = 0; r && row < rows->rows; row++)
        for (int column = 0; column < r->shape->count; column++) {
            if (r->shape->columns[column].kind == REPORT_FLAG && !pg_is_null(rows, row, column))
                report_flag(r, pg_get_bool(rows, row, column));
            else
                report_text(r, pg_get(rows, row, column));
        }
}

/* --- printing --- */

static size_t rows_of(const struct report *r)
{
    return r->count / (size_t)r->shape->count;
}

static struct str text_of(const struct report *r, size_t row, int column)
{
    const struct cell *cell = &r->cells[row * (size_t)r->shape->count + (size_t)column];
    if (cell->at == NONE)
        return str_of(NULL);
    return (struct str){r->text.at + cell->at, cell->len};
}

static bool is_printed(const struct report *r, int column)
{
    int where = r->shape->columns[column].where;
    return where == IN_BOTH || (where == IN_TABLE) == (r->format == REPORT_TABLE);
}

static bool fill_table(const struct report *r, struct libscols_table *table)
{
    for (int c = 0; c < r->shape->count; c++) {
        const struct report_column *column = &r->shape->columns[c];
        const char *heading = r->shape->headings ? column->name : ""; /* counts for the width even if not printed */
        int flags = column->kind == REPORT_NUMBER ? SCOLS_FL_RIGHT : 0;
        if (is_printed(r, c) && !scols_table_new_column(table, heading, column->width, flags))
            return false;
    }
    for (size_t row = 0; row < rows_of(r); row++) {
        struct libscols_line *line = scols_table_new_line(table, NULL);
        size_t at = 0;
        for (int c = 0; line && c < r->shape->count; c++) {
            struct str text = text_of(r, row, c);
            if (is_printed(r, c) && scols_line_set_data(line, at++, text.len ? text.at : r->shape->nothing))
                return false;
        }
        if (!line)
            return false;
    }
    return true;
}

/* Without the blanks that pad the last cells of a line. */
static void print_lines(const char *text)
{
    while (*text) {
        size_t len = strcspn(text, "\n"), shown = len;
        while (shown > 0 && text[shown - 1] == ' ')
            shown--;
        printf("%.*s\n", (int)shown, text);
        text += len + (text[len] == '\n');
    }
}

/* libsmartcols takes characters that the locale does not know for control characters, and PostgreSQL sends UTF-8. */
static enum err print_table(const struct report *r)
{
    char *text = NULL;
    (void)setlocale(LC_CTYPE, "C.UTF-8");
    struct libscols_table *table = scols_new_table();
    bool done = table && !scols_table_set_column_separator(table, "  ") &&
                !scols_table_set_termforce(table, SCOLS_TERMFORCE_NEVER) &&
                !scols_table_enable_noheadings(table, !r->shape->headings) && fill_table(r, table) &&
                !scols_print_table_to_string(table, &text);
    if (done)
        print_lines(text);
    free(text);
    scols_unref_table(table);
    return done ? OK : ERR_MEMORY;
}

static void print_csv_cell(struct str text)
{
    bool plain = true;
    for (size_t i = 0; i < text.len; i++)
        if (strchr("\",\r\n", text.at[i]))
            plain = false;
    if (plain) {
        printf("%.*s", STR_ARGS(text));
        return;
    }
    putchar('"');
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] == '"')
            putchar('"');
        putchar(text.at[i]);
    }
    putchar('"');
}

static void print_csv(struct report *r)
{
    for (int row = r->began ? 0 : -1; row < (int)rows_of(r); row++) {
        const char *comma = "";
        for (int c = 0; c < r->shape->count; c++) {
            if (!is_printed(r, c))
                continue;
            printf("%s", comma);
            print_csv_cell(row < 0 ? str_of(r->shape->columns[c].name) : text_of(r, (size_t)row, c));
            comma = ",";
        }
        printf("\r\n");
    }
    r->began = true;
}

static void write_json(const struct report *r, size_t row, struct json_writer *w)
{
    json_open(w, '{');
    for (int c = 0; c < r->shape->count; c++) {
        struct str text = text_of(r, row, c);
        if (!is_printed(r, c))
            continue;
        json_key(w, r->shape->columns[c].name);
        if (r->shape->columns[c].kind == REPORT_TEXT || !text.at)
            json_str(w, text);
        else if (r->shape->columns[c].kind == REPORT_FLAG)
            json_bool(w, str_eq(text, STR("yes")));
        else
            json_raw(w, text);
    }
    json_close(w, '}');
}

static enum err print_json(const struct report *r)
{
    AUTO(buf) struct buf out = buf_new(TEXT_CEILING);
    printf("[");
    for (size_t row = 0; row < rows_of(r); row++) {
        buf_clear(&out);
        struct json_writer w = json_to(&out);
        write_json(r, row, &w);
        if (out.failed)
            return ERR_MEMORY;
        printf("%s%.*s", row ? ",\n " : "", STR_ARGS(buf_str(&out)));
    }
    printf("]\n");
    return OK;
}

static enum err print_rows(struct report *r, struct why *why)
{
    enum err e = r && !r->failed ? OK : ERR_MEMORY;
    if (!e && r->format == REPORT_CSV)
        print_csv(r);
    else if (!e && r->format == REPORT_JSON)
        e = print_json(r);
    else if (!e && r->count > 0)
        e = print_table(r);
    return e ? why_set(why, e, "no memory for the list") : OK;
}

enum err report_print(struct report *r, struct why *why)
{
    enum err e = print_rows(r, why);
    if (!e && r->format == REPORT_TABLE && r->shape->what)
        printf("%zu %s%s\n", rows_of(r), r->shape->what, rows_of(r) == 1 ? "" : "s");
    return e;
}

enum err report_flush(struct report *r, struct why *why)
{
    enum err e = print_rows(r, why);
    if (e)
        return e;
    r->count = 0;
    buf_clear(&r->text);
    return fflush(stdout) == 0 ? OK : why_set(why, ERR_CLOSED, "the output could not be written");
}
