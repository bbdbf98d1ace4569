/* Reads the value of a metric, for tests of other modules. */
#ifndef TESTS_UNIT_BASE_METRIC_VALUE_H
#define TESTS_UNIT_BASE_METRIC_VALUE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"
#include "unit.h"

/* `sample` as it is rendered, labels included. */
static inline double metric_value(const char *sample)
{
    AUTO(buf) struct buf out = buf_new((size_t)1 << 20);
    metrics_render(&out);
    char line[96];
    snprintf(line, sizeof line, "\n%s ", sample);
    const char *at = buf_str(&out).at ? strstr(out.at, line) : NULL;
    if (!at)
        fail_msg("%s is missing", sample);
    return at ? strtod(at + strlen(line), NULL) : 0;
}

#endif
