/* A growing buffer with a maximum size. Errors are kept: the caller adds everything, then checks once at the end. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/str.h"

struct buf {
    char *at;
    size_t len, capacity, ceiling;
    enum err failed; /* ERR_MEMORY when the ceiling was reached or malloc() failed; nothing is added after that */
};

struct buf buf_new(size_t ceiling); /* allocates nothing yet */
/* Over the caller's memory: holds up to capacity - 1 bytes and is never freed. capacity > 0. */
struct buf buf_over(char *at, size_t capacity);
void buf_free(struct buf *b);
void buf_cleanup(struct buf *b); /* for AUTO(buf) struct buf b = buf_new(...) */
/* Each adds all bytes or none; the bytes added must not be part of the buffer itself. */
void buf_add(struct buf *b, struct str s);
void buf_addz(struct buf *b, const char *z);
void buf_addf(struct buf *b, const char *format, ...) PRINTF_LIKE(2, 3);
void buf_clear(struct buf *b); /* drops the bytes and the failure, keeps the memory */
/* Followed by a NUL, valid until the next change; absent after a failure, so that no partial text is sent. */
struct str buf_str(const struct buf *b);

#endif
