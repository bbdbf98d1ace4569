#include "http/accept.h"

#include <string.h>

enum match { MATCH_NONE, MATCH_ANY, MATCH_TYPE, MATCH_KIND };

static enum match match_of(struct str range, const char *kind)
{
    size_t type_len = strcspn(kind, "/") + 1;
    if (str_eq_nocase(range, str_of(kind)))
        return MATCH_KIND;
    if (range.len == type_len + 1 && range.at[type_len] == '*' &&
        str_eq_nocase((struct str){range.at, type_len}, (struct str){kind, type_len}))
        return MATCH_TYPE;
    return str_eq(range, STR("*/*")) ? MATCH_ANY : MATCH_NONE;
}

/* "0.8" in thousandths; what is no quality counts as 1, as if it were not given. */
static int quality_parse(struct str text)
{
    int value = 0, unit = 1000;
    for (size_t i = 0; i < text.len && i < sizeof "0.000" - 1; i++) {
        char c = text.at[i];
        if (i == 1 ? c != '.' : c < '0' || c > '9')
            return 1000;
        if (i == 1)
            continue;
        value += (c - '0') * unit;
        unit /= 10;
    }
    return text.len == 0 || value > 1000 ? 1000 : value;
}

static int quality_of(struct str parameters)
{
    struct str one;
    while (str_split(&parameters, ';', &one)) {
        one = str_trim(one);
        if (str_starts(one, STR("q=")) || str_starts(one, STR("Q=")))
            return quality_parse((struct str){one.at + 2, one.len - 2});
    }
    return 1000;
}

/* Of the most specific range that names the kind. */
static int wanted(struct str accept, const char *kind)
{
    struct str range, name;
    enum match best = MATCH_NONE;
    int quality = 0;
    while (str_split(&accept, ',', &range)) {
        if (!str_split(&range, ';', &name))
            continue;
        enum match match = match_of(str_trim(name), kind);
        if (match > best) {
            best = match;
            quality = quality_of(range);
        }
    }
    return quality;
}

bool accept_prefers(struct str accept, const char *kind, const char *other)
{
    return accept.at && wanted(accept, kind) > wanted(accept, other);
}
