#include "http/escapes.h"

#include <string.h>

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static bool is_text(struct str s)
{
    return str_is_utf8(s) && !memchr(s.at, 0, s.len);
}

enum err escapes_decode(struct arena *arena, struct str text, struct str *ret)
{
    if (!text.len || !memchr(text.at, '%', text.len)) {
        *ret = text;
        return !text.len || is_text(text) ? OK : ERR_INPUT;
    }
    char *decoded = arena_take(arena, text.len + 1);
    size_t len = 0;
    if (!decoded)
        return ERR_MEMORY;
    for (size_t at = 0; at < text.len; at++) {
        decoded[len] = text.at[at];
        if (text.at[at] == '%') {
            int high = at + 2 < text.len ? hex_digit(text.at[at + 1]) : -1;
            int low = high >= 0 ? hex_digit(text.at[at + 2]) : -1;
            if (low < 0)
                return ERR_INPUT;
            decoded[len] = (char)(high * 16 + low);
            at += 2;
        }
        len++;
    }
    if (!is_text((struct str){decoded, len}))
        return ERR_INPUT;
    *ret = (struct str){decoded, len};
    return OK;
}
