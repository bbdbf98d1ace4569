/* The operator's colour: whatever it is, text on it and links in it can be read. */
#include "pages/brand.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/unit.h"

static double channel(unsigned value)
{
    double c = value / 255.0;
    return c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4);
}

static double luminance(unsigned rgb)
{
    return 0.2126 * channel(rgb >> 16) + 0.7152 * channel(rgb >> 8 & 255) + 0.0722 * channel(rgb & 255);
}

static double contrast(unsigned a, unsigned b)
{
    double one = luminance(a) + 0.05, other = luminance(b) + 0.05;
    return one > other ? one / other : other / one;
}

/* The value of a custom property in the style sheet. */
static unsigned color_of(const char *css, const char *property)
{
    const char *at = strstr(css, property);
    assert_non_null(at);
    at += strlen(property);
    assert_memory_equal(at, ":#", 2);
    char *end;
    unsigned long color = strtoul(at + 2, &end, 16);
    assert_ptr_equal(end, at + 8);
    assert_int_equal(*end, ';');
    return (unsigned)color;
}

static void assert_readable(unsigned color)
{
    char text[8];
    bool adjusted;
    AUTO(buf) struct buf css = buf_new(4096);
    snprintf(text, sizeof text, "#%06x", color);
    assert_int_equal(brand_write_css(str_of(text), &css, &adjusted), OK);
    buf_add(&css, (struct str){"", 1});
    const char *sheet = buf_str(&css).at;
    unsigned accent = color_of(sheet, "--accent");
    assert_int_equal(adjusted, accent != color);
    if (contrast(accent, color_of(sheet, "--on-accent")) < 4.5)
        fail_msg("%s: %s", text, sheet);
    /* Of web/base.css: --card, --bg, --fill, --good-fill, --warn-fill and --bad-fill in both schemes. */
    static const unsigned light[] = {0xffffff, 0xf5f6f8, 0xe5f4eb, 0xf8efe2, 0xfbe9e7},
                          dark[] = {0x181a20, 0x0f1014, 0x20232b, 0x15301f, 0x33260f, 0x391a18};
    for (size_t i = 0; i < COUNT_OF(light); i++)
        if (contrast(color_of(sheet, "--link-light"), light[i]) < 4.5)
            fail_msg("%s on #%06x: %s", text, light[i], sheet);
    for (size_t i = 0; i < COUNT_OF(dark); i++)
        if (contrast(color_of(sheet, "--link-dark"), dark[i]) < 4.5)
            fail_msg("%s on #%06x: %s", text, dark[i], sheet);
}

static void every_colour_can_be_read(void **state UNUSED)
{
    static const unsigned known[] = {0x000000, 0xffffff, 0x2f5bea, 0xff0000, 0x00ff00,
                                     0x0000ff, 0xffff00, 0x777777, 0x767676, 0xffcc00};
    uint64_t random = 18;
    for (size_t i = 0; i < COUNT_OF(known); i++)
        assert_readable(known[i]);
    for (int i = 0; i < 5000; i++)
        assert_readable((unsigned)number_below(&random, 0x1000000));
}

static void a_colour_that_can_be_read_stays(void **state UNUSED)
{
    bool adjusted = true;
    AUTO(buf) struct buf css = buf_new(4096);
    assert_int_equal(brand_write_css(STR("#2F5BEA"), &css, &adjusted), OK);
    assert_false(adjusted);
    buf_add(&css, (struct str){"", 1});
    assert_int_equal(color_of(buf_str(&css).at, "--accent"), 0x2f5bea);
}

static void the_icon_has_the_colour(void **state UNUSED)
{
    AUTO(buf) struct buf svg = buf_new(4096);
    assert_int_equal(brand_write_icon(STR("#ffcc00"), &svg), OK);
    buf_add(&svg, (struct str){"", 1});
    assert_non_null(strstr(buf_str(&svg).at, "fill=\"#ffcc00\""));
}

static void what_is_no_colour_is_refused(void **state UNUSED)
{
    static const char *const wrong[] = {"",        "#",        "blue",      "#fff",   "2f5bea",
                                        "#2f5beg", "#2f5bea ", "#2f5bea00", " #2f5be"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        bool adjusted;
        AUTO(buf) struct buf css = buf_new(4096);
        assert_int_equal(brand_write_css(str_of(wrong[i]), &css, &adjusted), ERR_INPUT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_colour_can_be_read),
        cmocka_unit_test(a_colour_that_can_be_read_stays),
        cmocka_unit_test(the_icon_has_the_colour),
        cmocka_unit_test(what_is_no_colour_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
