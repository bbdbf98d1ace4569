/* A growing buffer that declares its ceiling. Errors stick: write on, ask once at the end. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/str.h"

struct buf {
    char *at;
    size_t len, capacity, ceiling;
    enum err failed; /* ERR_MEMORY once the ceiling or memory was reached; then nothing more is added */
};

struct buf buf_new(size_t ceiling); /* takes no memory yet */
/* Over the caller's memory: holds up to capacity - 1 bytes and is never freed. capacity > 0. */
struct buf buf_over(char *at, size_t capacity);
void buf_free(struct buf *b);
void buf_cleanup(struct buf *b); /* for AUTO(buf) struct buf b = buf_new(...) */
/* Each adds all or nothing; what it adds must not lie in the buffer itself. */
void buf_add(struct buf *b, struct str s);
void buf_addz(struct buf *b, const char *z);
void buf_addf(struct buf *b, const char *format, ...) PRINTF_LIKE(2, 3);
void buf_clear(struct buf *b); /* forgets the bytes and the failure, keeps the memory */
/* With a NUL behind it, valid until the next change; absent once something failed, so that no half is sent. */
struct str buf_str(const struct buf *b);

#endif
