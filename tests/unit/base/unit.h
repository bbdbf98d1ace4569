/* Included by every unit test: cmocka with the headers it requires, and assertions for our types. */
#ifndef TESTS_UNIT_BASE_UNIT_H
#define TESTS_UNIT_BASE_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/str.h"

#define assert_str(s, z)                                                                                               \
    do {                                                                                                               \
        struct str got_ = (s);                                                                                         \
        const char *want_ = (z);                                                                                       \
        assert_non_null(got_.at);                                                                                      \
        assert_int_equal(got_.len, str_of(want_).len);                                                                 \
        assert_memory_equal(got_.at, want_, got_.len);                                                                 \
    } while (0)
#define assert_absent(s) assert_null((s).at)

/* A pseudo-random sequence that is the same in every run, so that failures can be reproduced. */
static inline uint64_t next_number(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static inline uint64_t number_below(uint64_t *state, uint64_t bound)
{
    return next_number(state) % bound;
}

#endif
