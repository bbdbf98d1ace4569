#include "text/language.h"

#include "base/defs.h"

static const char *const tags[LANGUAGES] = {[LANGUAGE_EN] = "en", [LANGUAGE_DE] = "de"};

const char *language_tag(enum language language)
{
    return tags[language];
}

enum err language_parse(struct str tag, enum language *ret)
{
    struct str primary;
    if (!str_split(&tag, '-', &primary))
        return ERR_MISSING;
    for (size_t i = 0; i < LANGUAGES; i++) {
        if (!str_eq_nocase(primary, str_of(tags[i])))
            continue;
        *ret = (enum language)i;
        return OK;
    }
    return ERR_MISSING;
}

/* Thousandths of "q=0.7"; 1000 without it, 0 for what is no number. */
static int weight_of(struct str parameters)
{
    struct str one;
    while (str_split(&parameters, ';', &one)) {
        one = str_trim(one);
        if (one.len < 3 || (one.at[0] != 'q' && one.at[0] != 'Q') || one.at[1] != '=')
            continue;
        int weight = one.at[2] == '1' ? 1000 : 0, unit = 100;
        for (size_t i = 4; i < one.len && weight < 1000 && unit; i++, unit /= 10)
            weight += one.at[i] >= '0' && one.at[i] <= '9' ? (one.at[i] - '0') * unit : 0;
        return weight;
    }
    return 1000;
}

enum err language_asked(struct str accept, enum language *ret)
{
    enum language language;
    int best_weight = 0;
    struct str range, tag;
    while (str_split(&accept, ',', &range)) {
        if (!str_split(&range, ';', &tag) || language_parse(str_trim(tag), &language))
            continue;
        int weight = weight_of(range);
        if (weight > best_weight) {
            *ret = language;
            best_weight = weight;
        }
    }
    return best_weight ? OK : ERR_MISSING;
}

enum language language_choose(struct str accept, enum language otherwise)
{
    enum language asked;
    return language_asked(accept, &asked) ? otherwise : asked;
}
