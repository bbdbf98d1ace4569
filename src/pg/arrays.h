/* PostgreSQL's array literals, such as {1,2} or {"a","b"}, one element at a time, for one-dimensional parameters. */
#ifndef PG_ARRAYS_H
#define PG_ARRAYS_H

#include <stdint.h>

#include "base/buf.h"

void array_add_i64(struct buf *array, int64_t n);
void array_add_plain(struct buf *array, struct str element); /* nothing to quote in it: a UUID, a name in hex */
void array_add_text(struct buf *array, struct str element);  /* any; absent is null */
/* Completes it. NULL when it did not fit. */
const char *array_end(struct buf *array) MUST_CHECK;

/* Reads the next number off a literal of numbers; 0 for one that is none. */
int64_t array_next_i64(struct str *rest);

#endif
