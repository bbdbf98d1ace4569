/* Files of the repository that are embedded in the program: SQL, the API description, pages. */
#ifndef BASE_EMBEDDED_H
#define BASE_EMBEDDED_H

#include "base/str.h"

struct embedded {
    const char *name; /* path in the repository: "openapi/openapi.json" */
    struct str bytes; /* a NUL follows, not counted */
};

extern const struct embedded embedded_files[]; /* sorted by name; generated at build time */
extern const size_t embedded_count;

const struct embedded *embedded_find(const char *name); /* NULL when there is none */

#endif
