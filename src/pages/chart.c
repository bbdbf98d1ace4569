#include "pages/chart.h"

#include <math.h>

#include "text/html.h"

#define WIDTH 600.0
#define HEIGHT 120.0
#define TOP 2.0
#define BASE 118.0

static double number_at(const json_t *line, size_t i)
{
    double n = json_number_value(json_array_get(line, i));
    return isfinite(n) && n > 0 ? n : 0;
}

/* The least of 1, 2, 5, 10, 20 … that is not below the highest point. */
static double scale_of(const struct chart *c)
{
    double most = c->least, scale = 1;
    for (size_t l = 0; l < c->count; l++)
        for (size_t i = 0; i < json_array_size(c->lines[l]); i++)
            most = fmax(most, number_at(c->lines[l], i));
    for (int step = 0; scale < most && step < 60; step++)
        scale *= step % 3 == 1 ? 2.5 : 2;
    return scale;
}

static void draw_line(const json_t *line, size_t place, double scale, struct buf *out)
{
    size_t count = json_array_size(line);
    double step = count > 1 ? WIDTH / (double)(count - 1) : WIDTH;
    for (int filled = place == 0; filled >= 0; filled--) {
        buf_addf(out, "<path class=\"%s-%zu\" d=\"M", filled ? "area" : "line", place + 1);
        if (filled)
            buf_addf(out, "0 %.0fL", BASE);
        for (size_t i = 0; i < count; i++)
            buf_addf(out, "%s%.1f %.1f", i ? "L" : "", (double)i * step,
                     BASE - (BASE - TOP) * number_at(line, i) / scale);
        if (filled)
            buf_addf(out, "L%.0f %.0fZ", WIDTH, BASE);
        buf_addz(out, "\"/>");
    }
}

double chart_draw(const struct chart *c, struct buf *out)
{
    double scale = scale_of(c);
    buf_addf(out,
             "<svg class=\"chart\" viewBox=\"0 0 %.0f %.0f\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"",
             WIDTH, HEIGHT);
    html_add_text(out, c->label);
    buf_addz(out, "\">");
    for (int i = 0; i <= 2; i++)
        buf_addf(out, "<path class=\"grid\" d=\"M0 %.1fH%.0f\"/>", TOP + (BASE - TOP) * i / 2, WIDTH);
    for (size_t l = c->count; l-- > 0;)
        draw_line(c->lines[l], l, scale, out);
    buf_addz(out, "</svg>");
    return scale;
}

void chart_bar(int percent, const char *kind, struct buf *out)
{
    int width = percent < 1 ? 1 : percent > 100 ? 100 : percent;
    buf_addf(out,
             "<svg class=\"bar\" viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\" aria-hidden=\"true\">"
             "<rect class=\"track\" width=\"100\" height=\"8\"/><rect class=\"%s\" width=\"%d\" height=\"8\"/></svg>",
             kind, width);
}
