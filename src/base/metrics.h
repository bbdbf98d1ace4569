/* Metrics for Prometheus. Counting is lock-free; a metric is declared in the file that counts it:
 *
 *   METRIC_COUNTER(answers, "reclaim_http_answers_total", "Answers given.", "route", "status");
 *   METRIC_HISTOGRAM(lateness, "reclaim_hold_lateness_seconds", "Delay of held replies.", metric_seconds);
 *   ...
 *   counter_add(&answers, 1, "probe", "200");
 *   histogram_observe(&lateness, seconds);
 *
 * The declaration registers it before main(). Each call passes one value for each declared label. A combination of
 * values is a series; beyond METRIC_SERIES_MAX series, samples are counted under "other", which bounds the memory. */
#ifndef BASE_METRICS_H
#define BASE_METRICS_H

#include "base/buf.h"

#define METRIC_LABELS_MAX 3
#define METRIC_SERIES_MAX 256

struct metric_series; /* the values of one combination of labels */

struct metric {
    const char *name, *help;
    enum metric_kind { METRIC_IS_COUNTER, METRIC_IS_GAUGE, METRIC_IS_HISTOGRAM } kind;
    const char *labels[METRIC_LABELS_MAX];
    const double *bounds; /* of a histogram's buckets, ascending, without +Inf */
    size_t bound_count;
    _Atomic(struct metric_series *) *slots;
    size_t slot_count;
    _Atomic(struct metric_series *) other;
    double (*read)(void *context);
    void *context;
    struct metric *next; /* by name */
};

/* Distinct types, so that using a metric of the wrong kind does not compile. */
struct counter {
    struct metric metric;
};
struct gauge {
    struct metric metric;
};
struct histogram {
    struct metric metric;
};

#define METRIC_COUNTER(variable, name, help, ...)                                                                      \
    METRIC_DECLARE(counter, METRIC_IS_COUNTER, variable, name, help, NULL, 0, ##__VA_ARGS__)
#define METRIC_GAUGE(variable, name, help, ...)                                                                        \
    METRIC_DECLARE(gauge, METRIC_IS_GAUGE, variable, name, help, NULL, 0, ##__VA_ARGS__)
/* `buckets` is an array of upper bounds, in seconds for what is named _seconds. */
#define METRIC_HISTOGRAM(variable, name, help, buckets, ...)                                                           \
    METRIC_DECLARE(histogram, METRIC_IS_HISTOGRAM, variable, name, help, buckets, COUNT_OF(buckets), ##__VA_ARGS__)

extern const double metric_seconds[14]; /* 500 µs to 10 s: bounds that suit most durations */

#define counter_add(counter, by, ...) metric_count(counter, by, METRIC_VALUES(__VA_ARGS__))
#define gauge_set(gauge, value, ...) metric_set(gauge, value, METRIC_VALUES(__VA_ARGS__))
#define gauge_add(gauge, by, ...) metric_shift(gauge, by, METRIC_VALUES(__VA_ARGS__))
#define histogram_observe(histogram, value, ...) metric_observe(histogram, value, METRIC_VALUES(__VA_ARGS__))

/* Calls `read` for the value of a metric without labels whenever metrics are rendered; NULL ends that. Once this
 * returns, an earlier `read` is no longer called and its context may be freed. `read` must not call this module. */
void counter_source(struct counter *c, double (*read)(void *context), void *context);
void gauge_source(struct gauge *g, double (*read)(void *context), void *context);

/* All metrics in the text format 0.0.4, ordered by name. */
#define METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"
void metrics_render(struct buf *out);

/* The functions behind the macros above. */
void metric_register(struct metric *m);
void metric_count(struct counter *c, uint64_t by, const char *const *values, size_t count);
void metric_set(struct gauge *g, double value, const char *const *values, size_t count);
void metric_shift(struct gauge *g, double by, const char *const *values, size_t count);
void metric_observe(struct histogram *h, double value, const char *const *values, size_t count);

#define METRIC_STRINGS(...) ((const char *const[]){"", ##__VA_ARGS__})
#define METRIC_VALUES(...) METRIC_STRINGS(__VA_ARGS__) + 1, COUNT_OF(METRIC_STRINGS(__VA_ARGS__)) - 1
#define METRIC_DECLARE(type, kind_, variable, name_, help_, bounds_, bound_count_, ...)                                \
    static _Atomic(struct metric_series *)                                                                             \
        variable##_slots[COUNT_OF(METRIC_STRINGS(__VA_ARGS__)) > 1 ? METRIC_SERIES_MAX : 1];                           \
    static struct type variable = {{.name = name_,                                                                     \
                                    .help = help_,                                                                     \
                                    .kind = kind_,                                                                     \
                                    .labels = {__VA_ARGS__},                                                           \
                                    .bounds = bounds_,                                                                 \
                                    .bound_count = bound_count_,                                                       \
                                    .slots = variable##_slots,                                                         \
                                    .slot_count = COUNT_OF(variable##_slots)}};                                        \
    __attribute__((constructor)) static void variable##_register(void)                                                 \
    {                                                                                                                  \
        metric_register(&variable.metric);                                                                             \
    }                                                                                                                  \
    struct metric /* takes the declaration's semicolon */

#endif
