/* Recipients' addresses and the sender. */
#include <string.h>

#include "base/str.h"
#include "mail/inside.h"

/* What RFC 5321 and 6531 allow in an atom. */
static bool is_atom_char(unsigned char c)
{
    bool alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return alnum || c >= 0x80 || (c && strchr("!#$%&'*+/=?^_`{|}~-", c));
}

static bool is_dotted(struct str s, size_t most)
{
    if (s.len == 0 || s.len > most || s.at[0] == '.' || s.at[s.len - 1] == '.')
        return false;
    for (size_t i = 0; i < s.len; i++)
        if (s.at[i] == '.' ? s.at[i + 1] == '.' : !is_atom_char((unsigned char)s.at[i]))
            return false;
    return true;
}

bool address_is_sound(struct str address)
{
    struct str domain = address, local;
    return address.len <= MAIL_ADDRESS_MAX && str_is_utf8(address) && str_split(&domain, '@', &local) && domain.at &&
           is_dotted(local, 64) && is_dotted(domain, MAIL_ADDRESS_MAX);
}

/* A name may have any characters that are shown in one line. */
static bool name_is_sound(struct str name)
{
    for (size_t i = 0; i < name.len; i++)
        if ((unsigned char)name.at[i] < ' ' || name.at[i] == 0x7f || name.at[i] == '<' || name.at[i] == '>')
            return false;
    return str_is_utf8(name);
}

/* Removes the quotes around a name and the backslashes inside; ERR_INPUT for a misplaced quote. */
static enum err unquote(struct str name, char *into, size_t size)
{
    if (name.len == 0 || name.at[0] != '"')
        return memchr(name.at, '"', name.len) ? ERR_INPUT : str_copy(name, into, size);
    if (name.len < 2 || name.len - 2 >= size)
        return ERR_INPUT;
    size_t len = 0, i = 1;
    for (; i < name.len && name.at[i] != '"'; i++) {
        if (name.at[i] == '\\' && ++i == name.len)
            return ERR_INPUT;
        into[len++] = name.at[i];
    }
    into[len] = '\0';
    return i + 1 == name.len ? OK : ERR_INPUT;
}

enum err mail_from_parse(struct str text, struct mail_from *ret)
{
    struct mail_from from = {.name = ""};
    text = str_trim(text);
    struct str address = text;
    if (text.len > 0 && text.at[text.len - 1] == '>') {
        const char *open = memrchr(text.at, '<', text.len);
        if (!open)
            return ERR_INPUT;
        struct str name = str_trim((struct str){text.at, (size_t)(open - text.at)});
        address = (struct str){open + 1, (size_t)(text.at + text.len - 1 - (open + 1))};
        if (!name_is_sound(name) || unquote(name, from.name, sizeof from.name))
            return ERR_INPUT;
    }
    if (!address_is_sound(address) || str_copy(address, from.address, sizeof from.address))
        return ERR_INPUT;
    *ret = from;
    return OK;
}
