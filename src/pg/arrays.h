/* Writes and reads PostgreSQL's array literals, such as {1,2} or {"a","b"}, one element at a time, in one dimension. */
#ifndef PG_ARRAYS_H
#define PG_ARRAYS_H

#include <stdint.h>

#include "base/buf.h"

void array_add_i64(struct buf *array, int64_t n);
void array_add_plain(struct buf *array, struct str element); /* needs no quoting: a UUID, hex digits */
void array_add_text(struct buf *array, struct str element);  /* any text; absent is null */
/* Completes and returns the literal; NULL when it did not fit. */
const char *array_end(struct buf *array) MUST_CHECK;

/* Removes and returns the next element of a literal of numbers; 0 when it is not a number or none is left. */
int64_t array_next_i64(struct str *rest);

#endif
