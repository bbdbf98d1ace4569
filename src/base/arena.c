#include "base/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, len) ((void)(at), (void)(len))
#define ASAN_UNPOISON_MEMORY_REGION(at, len) ((void)(at), (void)(len))
#endif

struct block {
    alignas(max_align_t) struct block *next;
    size_t capacity;
    char bytes[];
};

struct arena {
    alignas(max_align_t) struct block *blocks; /* those taken after the first bytes, newest first */
    char *next, *end;                          /* unused bytes of the current block */
    size_t most_held;
    size_t used, held;
    char bytes[];
};

struct arena *arena_new(size_t first, size_t ceiling)
{
    if (ceiling > SIZE_MAX - sizeof(struct arena))
        ceiling = SIZE_MAX - sizeof(struct arena);
    if (first > ceiling)
        first = ceiling;

    struct arena *a = malloc(sizeof *a + first);
    if (!a)
        return NULL;
    *a = (struct arena){
        .next = a->bytes,
        .end = a->bytes + first,
        .most_held = sizeof *a + ceiling,
        .held = sizeof *a + first,
    };
    ASAN_POISON_MEMORY_REGION(a->bytes, first);
    return a;
}

/* Arenas of requests hold codes and passwords, which must not remain in freed memory. */
static void wipe(char *at, size_t len)
{
    ASAN_UNPOISON_MEMORY_REGION(at, len);
    explicit_bzero(at, len);
}

void arena_free(struct arena *a)
{
    if (!a)
        return;
    size_t first = a->held - sizeof *a;
    while (a->blocks) {
        struct block *b = a->blocks;
        a->blocks = b->next;
        first -= sizeof *b + b->capacity;
        wipe(b->bytes, b->capacity);
        free(b);
    }
    wipe(a->bytes, first);
    free(a);
}

void arena_cleanup(struct arena **a)
{
    arena_free(*a);
}

static size_t left(const struct arena *a)
{
    return (size_t)(a->end - a->next);
}

/* Doubles the memory held, so that many small allocations need few blocks; less near the ceiling. */
static struct block *block_new(struct arena *a, size_t size)
{
    size_t available = a->most_held - a->held;
    if (available < sizeof(struct block) || available - sizeof(struct block) < size)
        return NULL;
    available -= sizeof(struct block);

    size_t capacity = size > a->held ? size : a->held;
    if (capacity > available)
        capacity = available;
    struct block *b = malloc(sizeof *b + capacity);
    if (!b)
        return NULL;
    b->capacity = capacity;
    b->next = a->blocks;
    a->blocks = b;
    a->held += sizeof *b + capacity;
    ASAN_POISON_MEMORY_REGION(b->bytes, capacity);
    return b;
}

static char *carve(struct arena *a, size_t size, size_t align)
{
    size_t pad = (align - ((uintptr_t)a->next & (align - 1))) & (align - 1);
    char *at;
    if (pad <= left(a) && size <= left(a) - pad) {
        at = a->next + pad;
        a->next = at + size;
    } else {
        struct block *b = block_new(a, size);
        if (!b)
            return NULL;
        at = b->bytes;
        /* Continue where more bytes are left: a large allocation must not waste the rest of the current block. */
        if (b->capacity - size > left(a)) {
            a->next = at + size;
            a->end = b->bytes + b->capacity;
        }
    }
    a->used += size;
    ASAN_UNPOISON_MEMORY_REGION(at, size);
    return at;
}

void *arena_take(struct arena *a, size_t size)
{
    char *at = carve(a, size ? size : 1, alignof(max_align_t));
    if (at)
        memset(at, 0, size);
    return at;
}

struct str arena_copy(struct arena *a, struct str s)
{
    struct str none = {NULL, 0};
    if (!s.at || s.len == SIZE_MAX)
        return none;

    char *at = carve(a, s.len + 1, 1);
    if (!at)
        return none;
    memcpy(at, s.at, s.len);
    at[s.len] = '\0';
    return (struct str){at, s.len};
}

struct str arena_printf(struct arena *a, const char *format, ...)
{
    struct str none = {NULL, 0};
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, args);
    va_end(args);

    char *at = len < 0 ? NULL : carve(a, (size_t)len + 1, 1);
    if (at)
        (void)vsnprintf(at, (size_t)len + 1, format, again);
    va_end(again);
    return at ? (struct str){at, (size_t)len} : none;
}

size_t arena_used(const struct arena *a)
{
    return a->used;
}

size_t arena_held(const struct arena *a)
{
    return a->held;
}
