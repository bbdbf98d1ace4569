/* What the targets share. A broken promise ends the run as a crash, with the input that broke it. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PROMISE(condition)                                                                                             \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: broken promise: %s\n", __FILE__, __LINE__, #condition);                            \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

/* As a request's. */
static inline struct arena *fuzz_arena(void)
{
    struct arena *arena = arena_new(4096, 262144);
    PROMISE(arena);
    return arena;
}

/* A copy that ends where the memory does, so that reading one byte further is seen. */
static inline struct str fuzz_text(const uint8_t *data, size_t size)
{
    char *copy = malloc(size ? size : 1);
    PROMISE(copy);
    memcpy(copy, data, size);
    return (struct str){copy, size};
}

static inline void fuzz_text_free(struct str text)
{
    free((char *)(uintptr_t)text.at);
}

#endif
