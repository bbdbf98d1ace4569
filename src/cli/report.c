#include "cli/report.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"

#define COLUMNS_MAX 16

static struct str cell(const struct report *report, const struct pg_call *rows, int row, int column)
{
    if (column == report->flag)
        return pg_get_bool(rows, row, column) ? STR("yes") : STR("no");
    struct str value = pg_get(rows, row, column);
    return value.at ? value : STR("");
}

static struct str shown(const struct report *report, const struct pg_call *rows, int row, int column)
{
    struct str value = cell(report, rows, row, column);
    return value.len ? value : str_of(report->nothing);
}

void report_table(const struct report *report, const struct pg_call *rows)
{
    int width[COLUMNS_MAX], last = report->count - 1;
    for (int c = 0; c < report->count; c++) {
        width[c] = (int)strlen(report->columns[c]);
        for (int r = 0; r < rows->rows; r++)
            if ((int)shown(report, rows, r, c).len > width[c])
                width[c] = (int)shown(report, rows, r, c).len;
        printf("%s%-*s", c ? "  " : "", c == last ? 0 : width[c], report->columns[c]);
    }
    putchar('\n');
    for (int r = 0; r < rows->rows; r++) {
        for (int c = 0; c < report->count; c++)
            printf("%s%-*.*s", c ? "  " : "", c == last ? 0 : width[c], STR_ARGS(shown(report, rows, r, c)));
        putchar('\n');
    }
    printf("%d %s%s\n", rows->rows, report->what, rows->rows == 1 ? "" : "s");
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

void report_csv(const struct report *report, const struct pg_call *rows)
{
    for (int c = 0; c < report->count; c++)
        printf("%s%s", c ? "," : "", report->columns[c]);
    printf("\r\n");
    for (int r = 0; r < rows->rows; r++) {
        for (int c = 0; c < report->count; c++) {
            if (c)
                putchar(',');
            print_csv_cell(cell(report, rows, r, c));
        }
        printf("\r\n");
    }
}

void report_json(const struct report *report, const struct pg_call *rows)
{
    printf("[");
    for (int r = 0; r < rows->rows; r++) {
        AUTO(buf) struct buf out = buf_new(4096);
        struct json_writer w = json_to(&out);
        json_open(&w, '{');
        for (int c = 0; c < report->count; c++) {
            json_key(&w, report->columns[c]);
            if (c == report->flag)
                json_bool(&w, pg_get_bool(rows, r, c));
            else
                json_str(&w, pg_get(rows, r, c));
        }
        json_close(&w, '}');
        printf("%s%.*s", r ? ",\n " : "", STR_ARGS(buf_str(&out)));
    }
    printf("]\n");
}

report_printer *report_printer_named(const char *name)
{
    return !name || strcmp(name, "table") == 0 ? report_table
           : strcmp(name, "csv") == 0          ? report_csv
           : strcmp(name, "json") == 0         ? report_json
                                               : NULL;
}
