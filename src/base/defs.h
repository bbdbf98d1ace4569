/* Attributes and small macros that every folder uses. */
#ifndef BASE_DEFS_H
#define BASE_DEFS_H

#include <stddef.h>

#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))
#define UNUSED __attribute__((unused))

/* AUTO(thing) struct thing *t = ...;  calls thing_cleanup(&t) when t goes out of scope. */
#define AUTO(type) __attribute__((cleanup(type##_cleanup)))

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* A number that is a macro, as text in a constant: "LIMIT " TEXT_OF(MOST). */
#define TEXT_OF_NUMBER(n) #n
#define TEXT_OF(n) TEXT_OF_NUMBER(n)

/* The struct of which `pointer` is the member `member`. */
#define OWNER_OF(pointer, type, member) ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

#endif
