#include "text/colors.h"

#include <math.h>
#include <stdio.h>

#include "base/defs.h"
#include "base/digest.h"

#define CONTRAST 4.5
#define EDGE 1.5

struct color {
    double red, green, blue; /* 0 to 255 */
};

static const struct color white = {255, 255, 255}, black = {17, 20, 28};

/* What links stand on, in web/base.css and in mails: the page, cards, fills and notes. */
static const struct color light_backgrounds[] = {{255, 255, 255},
                                                 {245, 246, 248},
                                                 {229, 244, 235},
                                                 {248, 239, 226},
                                                 {251, 233, 231}},
                          dark_backgrounds[] = {{24, 26, 32}, {15, 16, 20}, {32, 35, 43},
                                                {21, 48, 31}, {51, 38, 15}, {57, 26, 24}};

/* WCAG 2: relative luminance. */
static double channel(double value)
{
    double c = value / 255;
    return c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4);
}

static double luminance(struct color c)
{
    return 0.2126 * channel(c.red) + 0.7152 * channel(c.green) + 0.0722 * channel(c.blue);
}

static double contrast(struct color a, struct color b)
{
    double one = luminance(a) + 0.05, other = luminance(b) + 0.05;
    return one > other ? one / other : other / one;
}

static struct color towards(struct color from, struct color to, double share)
{
    return (struct color){from.red + (to.red - from.red) * share, from.green + (to.green - from.green) * share,
                          from.blue + (to.blue - from.blue) * share};
}

static struct color rounded(struct color c)
{
    return (struct color){round(c.red), round(c.green), round(c.blue)};
}

static bool is_readable(struct color c, const struct color *backgrounds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (contrast(c, backgrounds[i]) < CONTRAST)
            return false;
    return true;
}

/* The nearest colour on the way to black or white that can be read on these backgrounds. */
static struct color readable_on(struct color c, const struct color *backgrounds, size_t count)
{
    struct color goal = luminance(backgrounds[0]) > 0.4 ? (struct color){0, 0, 0} : white, now = c;
    for (int step = 1; !is_readable(now, backgrounds, count) && step <= 50; step++)
        now = rounded(towards(c, goal, step / 50.0));
    return now;
}

static void write(char into[8], struct color c)
{
    snprintf(into, 8, "#%02x%02x%02x", (unsigned)c.red & 255, (unsigned)c.green & 255, (unsigned)c.blue & 255);
}

enum err brand_colors(struct str color, struct brand_colors *ret)
{
    uint8_t bytes[3];
    if (color.len != 7 || *color.at != '#' || hex_read((struct str){color.at + 1, 6}, bytes, 3))
        return ERR_INPUT;
    struct color brand = {bytes[0], bytes[1], bytes[2]}, accent = brand;
    /* White text where it can be read; on bright colours dark text; in between the colour is made darker. */
    struct color text = white;
    if (contrast(brand, white) < CONTRAST && contrast(brand, black) >= CONTRAST)
        text = black;
    else
        accent = readable_on(brand, &white, 1);
    ret->adjusted = accent.red != brand.red || accent.green != brand.green || accent.blue != brand.blue;
    write(ret->accent, accent);
    write(ret->on_accent, text);
    struct color link_light = readable_on(brand, light_backgrounds, COUNT_OF(light_backgrounds));
    struct color link_dark = readable_on(brand, dark_backgrounds, COUNT_OF(dark_backgrounds));
    write(ret->link_light, link_light);
    write(ret->link_dark, link_dark);
    /* A button in nearly the colour of its card has an edge that can be seen. */
    write(ret->edge_light, contrast(accent, light_backgrounds[0]) < EDGE ? link_light : accent);
    write(ret->edge_dark, contrast(accent, dark_backgrounds[0]) < EDGE ? link_dark : accent);
    return OK;
}
