/* Text inside HTML. */
#ifndef TEXT_HTML_H
#define TEXT_HTML_H

#include "base/buf.h"

/* Adds the text with & < > and " escaped: right between tags and inside quoted attributes. */
void html_add_text(struct buf *out, struct str text);

#endif
