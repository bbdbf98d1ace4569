#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct buf buf_new(size_t ceiling)
{
    /* One byte less than SIZE_MAX, because a NUL follows the bytes. */
    return (struct buf){.ceiling = ceiling < SIZE_MAX ? ceiling : SIZE_MAX - 1};
}

struct buf buf_over(char *at, size_t capacity)
{
    at[0] = '\0';
    return (struct buf){.at = at, .capacity = capacity, .ceiling = capacity - 1};
}

/* Buffers hold codes and tokens, which must not remain in freed memory. */
static void release(struct buf *b)
{
    if (!b->at)
        return;
    explicit_bzero(b->at, b->capacity);
    free(b->at);
}

void buf_free(struct buf *b)
{
    release(b);
    *b = buf_new(b->ceiling);
}

void buf_cleanup(struct buf *b)
{
    buf_free(b);
}

/* Allocates space for `more` bytes and the NUL after them. */
static bool grow(struct buf *b, size_t more)
{
    if (b->failed)
        return false;
    if (more > b->ceiling - b->len) {
        b->failed = ERR_MEMORY;
        return false;
    }
    if (b->len + more < b->capacity)
        return true;

    size_t capacity = b->capacity < 64 ? 64 : b->capacity;
    while (capacity <= b->len + more)
        capacity = capacity > SIZE_MAX / 2 ? SIZE_MAX : capacity * 2;
    if (capacity > b->ceiling + 1)
        capacity = b->ceiling + 1;
    char *at = malloc(capacity);
    if (!at) {
        b->failed = ERR_MEMORY;
        return false;
    }
    if (b->len > 0)
        memcpy(at, b->at, b->len);
    release(b);
    b->at = at;
    b->capacity = capacity;
    return true;
}

void buf_add(struct buf *b, struct str s)
{
    if (s.len == 0 || !grow(b, s.len))
        return;
    memcpy(b->at + b->len, s.at, s.len);
    b->len += s.len;
    b->at[b->len] = '\0';
}

void buf_addz(struct buf *b, const char *z)
{
    buf_add(b, str_of(z));
}

void buf_addf(struct buf *b, const char *format, ...)
{
    if (b->failed)
        return;

    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (len < 0) {
        b->failed = ERR_MEMORY;
    } else if (grow(b, (size_t)len)) {
        (void)vsnprintf(b->at + b->len, (size_t)len + 1, format, again);
        b->len += (size_t)len;
    }
    va_end(again);
}

void buf_clear(struct buf *b)
{
    b->len = 0;
    b->failed = OK;
    if (b->at)
        b->at[0] = '\0';
}

struct str buf_str(const struct buf *b)
{
    if (b->failed)
        return (struct str){NULL, 0};
    return b->at ? (struct str){b->at, b->len} : STR("");
}
