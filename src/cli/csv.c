#include "cli/csv.h"

struct csv csv_new(FILE *file)
{
    struct csv csv = {.file = file, .text = buf_new(CSV_RECORD_MAX), .line = 1};
    int first = getc(file);
    if (first == 0xEF) {
        (void)getc(file);
        (void)getc(file);
    } else {
        (void)ungetc(first, file);
    }
    return csv;
}

void csv_cleanup(struct csv *csv)
{
    buf_free(&csv->text);
}

static void add(struct csv *csv, int c)
{
    char byte = (char)c;
    buf_add(&csv->text, (struct str){&byte, 1});
}

/* The next byte, with CRLF as one LF. */
static int next(struct csv *csv)
{
    int c = getc(csv->file);
    if (c == '\r') {
        c = getc(csv->file);
        if (c != '\n') {
            (void)ungetc(c, csv->file);
            return '\r';
        }
    }
    return c;
}

/* Reads behind the opening quote; returns the byte behind the closing one, or ERR_INPUT. */
static enum err read_quoted(struct csv *csv, int *ret_behind, struct why *why)
{
    int64_t began = csv->line;
    for (;;) {
        int c = next(csv);
        if (c == EOF)
            return why_set(why, ERR_INPUT, "line %lld: a quote is not closed", (long long)began);
        if (c == 0)
            return why_set(why, ERR_INPUT, "line %lld: a NUL within a field", (long long)csv->line);
        if (c == '\n')
            csv->line++;
        if (c == '"' && (c = next(csv)) != '"') {
            *ret_behind = c;
            return c == ',' || c == '\n' || c == EOF
                       ? OK
                       : why_set(why, ERR_INPUT, "line %lld: text behind a closing quote", (long long)csv->line);
        }
        add(csv, c);
    }
}

/* One field, with a NUL behind it; what ended it into `ret_end`. */
static enum err read_field(struct csv *csv, int first, int *ret_end, struct why *why)
{
    int c = first;
    enum err e = OK;
    if (c == '"')
        e = read_quoted(csv, &c, why);
    else
        for (; c != ',' && c != '\n' && c != EOF; c = next(csv)) {
            if (c == '"' || c == 0)
                return why_set(why, ERR_INPUT, "line %lld: %s within a field", (long long)csv->line,
                               c ? "a quote" : "a NUL");
            add(csv, c);
        }
    buf_add(&csv->text, (struct str){"", 1});
    *ret_end = c;
    if (!e && csv->text.failed)
        e = why_set(why, ERR_INPUT, "line %lld: longer than 64 KiB", (long long)csv->line);
    return e;
}

static void point_at_fields(const struct csv *csv, struct csv_record *record)
{
    const char *at = csv->text.at;
    for (int i = 0; i < record->count; i++) {
        record->fields[i] = str_of(at);
        at += record->fields[i].len + 1;
    }
}

enum err csv_next(struct csv *csv, struct csv_record *ret, struct why *why)
{
    int end = ',', c;
    while ((c = next(csv)) == '\n')
        csv->line++;
    if (c == EOF)
        return ferror(csv->file) ? why_set(why, ERR_SYSTEM, "the file cannot be read") : ERR_MISSING;
    buf_clear(&csv->text);
    *ret = (struct csv_record){.line = csv->line};
    for (; end == ','; c = end == ',' ? next(csv) : EOF) {
        if (ret->count == CSV_FIELDS_MAX)
            return why_set(why, ERR_INPUT, "line %lld: more than %d fields", (long long)csv->line, CSV_FIELDS_MAX);
        enum err e = read_field(csv, c, &end, why);
        if (e)
            return e;
        ret->count++;
    }
    if (end == '\n')
        csv->line++;
    point_at_fields(csv, ret);
    return OK;
}
