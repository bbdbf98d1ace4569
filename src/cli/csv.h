/* Reads CSV (RFC 4180): fields with commas between, quoted ones with anything in them, lines that end with LF or CRLF. */
#ifndef CLI_CSV_H
#define CLI_CSV_H

#include <stdio.h>

#include "base/buf.h"

#define CSV_FIELDS_MAX 16
#define CSV_RECORD_MAX ((size_t)64 * 1024)

struct csv_record {
    int64_t line; /* where it begins, from 1 on */
    int count;
    struct str fields[CSV_FIELDS_MAX]; /* C strings, valid until the next record */
};

struct csv {
    FILE *file;
    struct buf text; /* of the record: its fields, a NUL behind each */
    int64_t line;
};

struct csv csv_new(FILE *file); /* skips a byte order mark */
void csv_cleanup(struct csv *csv);
/* ERR_MISSING: there is none left. ERR_INPUT: `why` says what is wrong with the record, which cannot be read further. Lines
 * without anything are skipped. */
enum err csv_next(struct csv *csv, struct csv_record *ret, struct why *why) MUST_CHECK;

#endif
