/* Bytes with a length, and the parsers that turn them into bounded values. Nothing here allocates. */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct str {
    const char *at; /* not NUL-terminated in general; NULL means absent */
    size_t len;
};

#define STR(literal) ((struct str){"" literal, sizeof(literal) - 1})
/* For printf's "%.*s". */
#define STR_ARGS(s) (int)(s).len, (s).at

struct str str_of(const char *z);               /* NULL gives an absent str */
bool str_eq(struct str a, struct str b);        /* absent equals absent only, not "" */
bool str_eq_nocase(struct str a, struct str b); /* ASCII only, as in HTTP and e-mail domains */
bool str_starts(struct str s, struct str prefix);
struct str str_trim(struct str s); /* space, tab, CR, LF, FF, VT at both ends */

/* Removes the part before `separator` from *rest; false when *rest is used up. Parts may be empty. */
bool str_split(struct str *rest, char separator, struct str *ret_part);

/* Copies with a NUL; ERR_FULL when it does not fit, ERR_INPUT when s holds a NUL. */
enum err str_copy(struct str s, char *into, size_t size) MUST_CHECK;
void str_lower(char *at, size_t len); /* ASCII only, in place */

bool str_is_utf8(struct str s); /* no overlong forms, surrogates or values past U+10FFFF */
/* Length of the first UTF-8 character of s in bytes; 0 when s is empty or does not begin with a valid one. */
size_t str_utf8_len(struct str s);
#define UUID_NIL "00000000-0000-0000-0000-000000000000" /* sorts first in PostgreSQL */
bool str_is_uuid(struct str s);                         /* 8-4-4-4-12 hex digits, either case */

/* Decimal only, no sign for min >= 0, no spaces; ERR_INPUT unless the whole text is a number within the bounds. */
enum err str_to_i64(struct str s, int64_t min, int64_t max, int64_t *ret) MUST_CHECK;
/* "500ms", "10s", "15m", "2h", "30d"; the unit is required except for "0". */
enum err str_to_duration_ms(struct str s, int64_t *ret_ms) MUST_CHECK;

#endif
