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
    for (size_t i = 0; i < text.len; i++) {
        const char *entity = entity_of(text.at[i]);
        if (entity)
            buf_addz(out, entity);
        else
            buf_add(out, (struct str){text.at + i, 1});
    }
}
