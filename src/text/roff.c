#include "text/roff.h"

#include <stdbool.h>

#include "base/str.h"

/* Characters beyond ASCII are written as \[u2026]: man(1) may read the page in any encoding. */
static size_t print_character(FILE *out, struct str rest)
{
    size_t len = str_utf8_len(rest);
    unsigned code = len ? (unsigned char)rest.at[0] & (0xFFu >> (len + 1)) : '?';
    for (size_t i = 1; i < len; i++)
        code = code << 6 | ((unsigned char)rest.at[i] & 0x3F);
    fprintf(out, "\\[u%04X]", code);
    return len ? len : 1;
}

void roff_print(FILE *out, const char *text)
{
    struct str rest = str_of(text);
    bool begins_line = true;
    while (rest.len) {
        char c = *rest.at;
        size_t len = 1;
        if (begins_line && (c == '.' || c == '\''))
            fputs("\\&", out);
        if ((unsigned char)c >= 0x80)
            len = print_character(out, rest);
        else if (c == '\\')
            fputs("\\e", out);
        else if (c == '-')
            fputs("\\-", out);
        else if (c != '`')
            fputc(c, out);
        begins_line = c == '\n';
        rest = (struct str){rest.at + len, rest.len - len};
    }
}
