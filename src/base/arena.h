/* A memory arena: everything allocated from it is freed together. Used by one thread at a time. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/str.h"

struct arena;

/* `first` bytes are allocated with the arena itself, more in blocks as needed, at most `ceiling` in total.
 * Its memory is wiped before it is freed. */
struct arena *arena_new(size_t first, size_t ceiling) MUST_CHECK;
void arena_free(struct arena *a); /* NULL is allowed */
void arena_cleanup(struct arena **a);

/* Zeroed and aligned for any type; NULL when the ceiling is reached or malloc() fails. */
void *arena_take(struct arena *a, size_t size) MUST_CHECK;
/* A copy followed by a NUL, so that .at is also a C string; absent when it does not fit. */
struct str arena_copy(struct arena *a, struct str s) MUST_CHECK;
struct str arena_printf(struct arena *a, const char *format, ...) PRINTF_LIKE(2, 3) MUST_CHECK;

size_t arena_used(const struct arena *a); /* bytes handed out */
size_t arena_held(const struct arena *a); /* bytes taken from the system */

#endif
