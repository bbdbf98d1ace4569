/* Files of the repository that travel inside the program: the SQL, the API description, pages. */
#ifndef BASE_EMBEDDED_H
#define BASE_EMBEDDED_H

#include "base/str.h"

struct embedded {
    const char *name; /* as in the repository: "sql/tables/0001_installation.up.sql" */
    struct str bytes; /* a NUL follows, not counted */
};

extern const struct embedded embedded_files[]; /* sorted by name; made at build time */
extern const size_t embedded_count;

const struct embedded *embedded_find(const char *name); /* NULL when there is none */

#endif
