/* Private to src/pages: the templates of web/templates, or the operator's in their place. */
#ifndef PAGES_TEMPLATES_H
#define PAGES_TEMPLATES_H

#include "pages/pages.h"

/* All of them, parsed at start. */
enum err templates_load(struct pages *pages, struct why *why) MUST_CHECK;
void templates_free(struct pages *pages);
void templates_fill(const struct pages *pages, const char *name, const struct reader *reader, const json_t *values,
                    struct buf *out);

#endif
