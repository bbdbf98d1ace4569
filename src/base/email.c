#include "base/email.h"

#include <string.h>

static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* Atoms of RFC 5321 joined by single dots. */
static bool is_local_part(struct str s)
{
    if (s.len == 0 || s.len > 64 || s.at[0] == '.' || s.at[s.len - 1] == '.')
        return false;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.at[i];
        if (c == '.' && s.at[i - 1] == '.')
            return false;
        if (c != '.' && !is_alnum(c) && (c == '\0' || !strchr("!#$%&'*+/=?^_`{|}~-", c)))
            return false;
    }
    return true;
}

static bool is_label(struct str s)
{
    if (s.len == 0 || s.len > 63 || s.at[0] == '-' || s.at[s.len - 1] == '-')
        return false;
    for (size_t i = 0; i < s.len; i++)
        if (!is_alnum(s.at[i]) && s.at[i] != '-')
            return false;
    return true;
}

static bool is_domain(struct str s)
{
    struct str label = {NULL, 0};
    int labels = 0;
    while (str_split(&s, '.', &label)) {
        if (!is_label(label))
            return false;
        labels++;
    }
    /* A top-level domain starts with a letter; "user@127.0.0.1" is not accepted. */
    return labels >= 2 && label.len >= 2 && label.at[0] >= 'a' && label.at[0] <= 'z';
}

enum err email_normalise(struct arena *arena, struct str given, struct str *ret)
{
    given = str_trim(given);
    if (given.len == 0 || given.len > EMAIL_MAX)
        return ERR_INPUT;
    struct str email = arena_copy(arena, given);
    if (!email.at)
        return ERR_MEMORY;
    char *writable = (char *)(uintptr_t)email.at; /* our own copy */
    str_lower(writable, email.len);

    struct str domain = email, local;
    if (!str_split(&domain, '@', &local) || !domain.at || !is_local_part(local) || !is_domain(domain))
        return ERR_INPUT;
    *ret = email;
    return OK;
}
