/* Private to src/pages: the operator's colour, as a style sheet with enough contrast in both schemes. */
#ifndef PAGES_BRAND_H
#define PAGES_BRAND_H

#include "base/buf.h"

/* "#2f5bea" → custom properties --accent, --on-accent and --link for light and dark. Text on the accent and links have a
 * contrast of at least 4.5:1: colours are made darker or lighter until they do; *ret_adjusted tells whether the accent itself
 * had to change. ERR_INPUT when it is no #rrggbb. */
enum err brand_write_css(struct str color, struct buf *out, bool *ret_adjusted) MUST_CHECK;
/* A square in the accent, as SVG, for the browser's tab. */
enum err brand_write_icon(struct str color, struct buf *out) MUST_CHECK;

#endif
