/* Rows of the database for people and for programs: a table, CSV or JSON on standard output. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "pg/pg.h"

struct report {
    const char *const *columns;
    int count;
    int flag;            /* the column that is yes or no; -1: none */
    const char *nothing; /* what a table shows where there is no value */
    const char *what;    /* "orphaned account": the line behind a table counts them */
};

/* What --format takes; NULL means the table. NULL comes back for a name that is none. */
typedef void report_printer(const struct report *report, const struct pg_call *rows);
report_printer *report_printer_named(const char *name);

report_printer report_table, report_csv, report_json;

#endif
