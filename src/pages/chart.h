/* Private to src/pages: charts as SVG, coloured by the style sheet. */
#ifndef PAGES_CHART_H
#define PAGES_CHART_H

#include "base/buf.h"
#include "base/json.h"

#define CHART_LINES_MAX 3

struct chart {
    const json_t *lines[CHART_LINES_MAX]; /* arrays of numbers, equally long, the oldest first */
    size_t count;
    double least;     /* the top of the scale is not below */
    struct str label; /* says what it shows, for those who do not see it */
};

/* Returns the number at the top of its scale. The text at the axes is the template's, so that it does not grow with the chart. */
double chart_draw(const struct chart *c, struct buf *out);
/* A bar of so many per cent. */
void chart_bar(int percent, const char *kind, struct buf *out);

#endif
