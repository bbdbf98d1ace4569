/* A list on standard output: a table for people, CSV (RFC 4180) or a JSON array for programs.
 *
 *   AUTO(report) struct report *r = report_new(&shape, c->format);
 *   report_text(r, name); report_number(r, rows);    one call for each column, row after row
 *   return report_print(r, &c->why);
 *
 * In a table control characters are written as \x1b, so that no text from the database moves the cursor; CSV has the
 * bytes as they are, JSON escapes them. Tables are never truncated. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "pg/pg.h"

enum report_format { REPORT_TABLE, REPORT_CSV, REPORT_JSON };

enum report_kind { REPORT_TEXT, REPORT_NUMBER, REPORT_FLAG };

struct report_column {
    const char *name;
    enum report_kind kind;                     /* numbers are right-aligned; flags are yes or no */
    enum { IN_BOTH, IN_TABLE, IN_DATA } where; /* "7 of 10" is for people, its two numbers for programs */
    int width;                                 /* of a table, at least */
};

struct report_shape {
    const struct report_column *columns;
    int count;
    bool headings;       /* of a table; CSV always has them */
    const char *nothing; /* what a table shows for a null */
    const char *what;    /* "orphaned account": counted in the line behind a table; NULL: no such line */
};

struct report;

enum err report_format_named(const char *name, enum report_format *ret) MUST_CHECK; /* ERR_INPUT: there is none */

/* Memory errors are returned by report_print; a NULL report is fine for all of these. */
struct report *report_new(const struct report_shape *shape, enum report_format format) MUST_CHECK;
void report_cleanup(struct report **r);
void report_text(struct report *r, struct str text); /* absent: null */
void report_number(struct report *r, int64_t number);
void report_flag(struct report *r, bool flag);
void report_null(struct report *r);
/* All rows of an answer whose columns are the report's. */
void report_rows(struct report *r, const struct pg_call *rows);

/* Prints everything, with what comes before and behind the rows. */
enum err report_print(struct report *r, struct why *why) MUST_CHECK;
/* Prints the rows so far, for a list without an end: CSV, or a table without headings. */
enum err report_flush(struct report *r, struct why *why) MUST_CHECK;

#endif
