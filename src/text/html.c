#include "text/html.h"

static const char *entity_of(char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    default:
        return NULL;
    }
}

void html_add_text(struct buf *out, struct str text)
{
    size_t plain = 0; /* where the characters begin that are not added yet */
    for (size_t i = 0; i < text.len; i++) {
        const char *entity = entity_of(text.at[i]);
        if (!entity)
            continue;
        buf_add(out, (struct str){text.at + plain, i - plain});
        buf_addz(out, entity);
        plain = i + 1;
    }
    if (plain < text.len)
        buf_add(out, (struct str){text.at + plain, text.len - plain});
}
