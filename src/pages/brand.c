#include "pages/brand.h"

#include "text/colors.h"

enum err brand_write_css(struct str color, struct buf *out, bool *ret_adjusted)
{
    struct brand_colors c;
    enum err e = brand_colors(color, &c);
    if (e)
        return e;
    *ret_adjusted = c.adjusted;
    buf_addf(out, ":root{--accent:%s;--on-accent:%s;--link-light:%s;--link-dark:%s;}\n", c.accent, c.on_accent,
             c.link_light, c.link_dark);
    return out->failed;
}
