/* Memory with a life span: everything taken from an arena goes when the arena goes. One thread at a time. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/str.h"

struct arena;

/* `first` bytes come with the arena itself, more in blocks as needed, never beyond `ceiling` in all.
 * What it held is wiped when it goes. */
struct arena *arena_new(size_t first, size_t ceiling) MUST_CHECK;
void arena_free(struct arena *a); /* NULL is fine */
void arena_cleanup(struct arena **a);

/* Zeroed and aligned for any type; NULL once the ceiling or the machine's memory is reached. */
void *arena_take(struct arena *a, size_t size) MUST_CHECK;
/* A copy with a NUL behind it, so that .at is a C string too; absent when it does not fit. */
struct str arena_copy(struct arena *a, struct str s) MUST_CHECK;
struct str arena_printf(struct arena *a, const char *format, ...) PRINTF_LIKE(2, 3) MUST_CHECK;

size_t arena_used(const struct arena *a); /* bytes handed out */
size_t arena_held(const struct arena *a); /* bytes taken from the system */

#endif
