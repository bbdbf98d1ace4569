/* Style sheets, scripts and images of the pages: embedded, compressed, and cached by browsers for ever under a name that
 * changes with their content. */
#ifndef PAGES_ASSETS_H
#define PAGES_ASSETS_H

#include "http/request.h"

struct asset {
    const char *name;    /* "base.css" */
    const char *address; /* "/assets/base-1f0c2d9a7b.css" */
    const char *type;
    struct str plain, gzip, brotli; /* the last two may be absent */
};

extern const struct asset built_in_assets[]; /* generated from web/ */
extern const size_t built_in_asset_count;

/* An asset made at start, such as the brand's colours; before the first request. The content is copied, the name and type are
 * constants. */
enum err asset_add(const char *name, const char *type, struct str content, struct why *why) MUST_CHECK;
void assets_free(void); /* those that were added */

const char *asset_address(const char *name); /* NULL: there is none */
void asset_handle(struct request *rq);       /* GET /assets/{file} */

/* Whether an Accept-Encoding header allows it: "br" or "gzip". */
bool encoding_is_accepted(struct str encodings, struct str wanted);

#endif
