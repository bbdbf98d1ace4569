/* The migrations, from the files embedded under sql/migrations/: NNNN_name.up.sql and NNNN_name.down.sql. */
#ifndef PG_MIGRATIONS_H
#define PG_MIGRATIONS_H

#include "base/embedded.h"

struct migration {
    int version; /* 1, 2, 3… without gaps */
    char name[64];
    struct str up, down; /* a NUL follows each */
};

#define MIGRATIONS_MAX 256
#define MIGRATIONS_FOLDER "sql/migrations/"

/* Those embedded in the program, in order. */
enum err migrations_embedded(const struct migration **ret, size_t *ret_count, struct why *why) MUST_CHECK;
/* Those among the files, which are sorted by name; `into` has room for MIGRATIONS_MAX. ERR_INPUT when one is missing. */
enum err migrations_read(const struct embedded *files, size_t file_count, struct migration *into, size_t *ret_count,
                         struct why *why) MUST_CHECK;

#endif
