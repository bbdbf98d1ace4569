#include "pages/brand.h"

#include "text/colors.h"

enum err brand_write_css(struct str color, struct buf *out, bool *ret_adjusted)
{
    struct brand_colors c;
    enum err e = brand_colors(color, &c);
    if (e)
        return e;
    *ret_adjusted = c.adjusted;
    buf_addf(out, ":root{--accent:%s;--on-accent:%s;--link-light:%s;--link-dark:%s;--edge:light-dark(%s,%s);}\n",
             c.accent, c.on_accent, c.link_light, c.link_dark, c.edge_light, c.edge_dark);
    return out->failed;
}

enum err brand_write_icon(struct str color, struct buf *out)
{
    struct brand_colors c;
    enum err e = brand_colors(color, &c);
    if (e)
        return e;
    buf_addf(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 26 26\"><rect width=\"26\" height=\"26\" rx=\"8\" "
        "fill=\"%s\"/></svg>",
        c.accent);
    return out->failed;
}
