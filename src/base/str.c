#include "base/str.h"

#include <string.h>

struct str str_of(const char *z)
{
    return (struct str){z, z ? strlen(z) : 0};
}

bool str_eq(struct str a, struct str b)
{
    if (!a.at || !b.at)
        return !a.at && !b.at;
    return a.len == b.len && memcmp(a.at, b.at, a.len) == 0;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

bool str_eq_nocase(struct str a, struct str b)
{
    if (!a.at || !b.at)
        return !a.at && !b.at;
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++) {
        if (lower(a.at[i]) != lower(b.at[i]))
            return false;
    }
    return true;
}

bool str_starts(struct str s, struct str prefix)
{
    return s.at && prefix.at && s.len >= prefix.len && memcmp(s.at, prefix.at, prefix.len) == 0;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

struct str str_trim(struct str s)
{
    while (s.len > 0 && is_space(s.at[0])) {
        s.at++;
        s.len--;
    }
    while (s.len > 0 && is_space(s.at[s.len - 1]))
        s.len--;
    return s;
}

bool str_split(struct str *rest, char separator, struct str *ret_part)
{
    if (!rest->at)
        return false;

    const char *end = memchr(rest->at, separator, rest->len);
    if (!end) {
        *ret_part = *rest;
        *rest = (struct str){NULL, 0};
        return true;
    }
    size_t len = (size_t)(end - rest->at);
    *ret_part = (struct str){rest->at, len};
    *rest = (struct str){end + 1, rest->len - len - 1};
    return true;
}

enum err str_copy(struct str s, char *into, size_t size)
{
    if (s.len > 0 && memchr(s.at, '\0', s.len))
        return ERR_INPUT;
    if (s.len >= size)
        return ERR_FULL;
    if (s.len > 0)
        memcpy(into, s.at, s.len);
    into[s.len] = '\0';
    return OK;
}

void str_lower(char *at, size_t len)
{
    for (size_t i = 0; i < len; i++)
        at[i] = lower(at[i]);
}

size_t str_utf8_len(struct str s)
{
    if (s.len == 0)
        return 0;

    const unsigned char *at = (const unsigned char *)s.at;
    if (at[0] < 0x80)
        return 1;

    /* The first byte determines the length and the range of the second, which excludes overlong forms
     * (C0, C1, E0, F0), surrogates (ED) and values past U+10FFFF (F4). */
    unsigned char least = 0x80, most = 0xBF;
    size_t len;
    if (at[0] >= 0xC2 && at[0] <= 0xDF) {
        len = 2;
    } else if (at[0] >= 0xE0 && at[0] <= 0xEF) {
        len = 3;
        least = at[0] == 0xE0 ? 0xA0 : least;
        most = at[0] == 0xED ? 0x9F : most;
    } else if (at[0] >= 0xF0 && at[0] <= 0xF4) {
        len = 4;
        least = at[0] == 0xF0 ? 0x90 : least;
        most = at[0] == 0xF4 ? 0x8F : most;
    } else {
        return 0;
    }
    if (s.len < len || at[1] < least || at[1] > most)
        return 0;
    for (size_t i = 2; i < len; i++) {
        if ((at[i] & 0xC0) != 0x80)
            return 0;
    }
    return len;
}

bool str_is_utf8(struct str s)
{
    while (s.len > 0) {
        size_t len = str_utf8_len(s);
        if (len == 0)
            return false;
        s.at += len;
        s.len -= len;
    }
    return true;
}

bool str_is_uuid(struct str s)
{
    if (s.len != 36)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        char c = lower(s.at[i]);
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? c != '-' : !((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return false;
    }
    return true;
}

enum err str_to_i64(struct str s, int64_t min, int64_t max, int64_t *ret)
{
    bool negative = min < 0 && s.len > 0 && s.at[0] == '-';
    if (negative) {
        s.at++;
        s.len--;
    }
    if (s.len == 0)
        return ERR_INPUT;

    int64_t n = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (s.at[i] < '0' || s.at[i] > '9')
            return ERR_INPUT;
        /* Negative numbers are summed as negative, so that INT64_MIN can be parsed. */
        int digit = s.at[i] - '0';
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, negative ? -digit : digit, &n))
            return ERR_INPUT;
    }
    if (n < min || n > max)
        return ERR_INPUT;
    *ret = n;
    return OK;
}

enum err str_to_duration_ms(struct str s, int64_t *ret_ms)
{
    static const struct {
        struct str suffix;
        int64_t ms;
    } units[] = {
        {{"ms", 2}, 1}, {{"s", 1}, 1000}, {{"m", 1}, 60000}, {{"h", 1}, 3600000}, {{"d", 1}, 86400000},
    };

    if (str_eq(s, STR("0"))) {
        *ret_ms = 0;
        return OK;
    }
    size_t digits = 0;
    while (digits < s.len && s.at[digits] >= '0' && s.at[digits] <= '9')
        digits++;
    if (digits == s.len)
        return ERR_INPUT;
    struct str unit = {s.at + digits, s.len - digits};
    for (size_t i = 0; i < COUNT_OF(units); i++) {
        if (!str_eq(unit, units[i].suffix))
            continue;
        int64_t n;
        enum err e = str_to_i64((struct str){s.at, digits}, 0, INT64_MAX / units[i].ms, &n);
        if (e)
            return e;
        *ret_ms = n * units[i].ms;
        return OK;
    }
    return ERR_INPUT;
}
