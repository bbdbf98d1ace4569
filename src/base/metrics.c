#include "base/metrics.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define LABEL_VALUE_MAX 96

/* Published when complete and never freed: any thread may be counting in it. */
struct metric_series {
    uint64_t hash;
    const char *values[METRIC_LABELS_MAX]; /* the bytes follow the cells */
    /* A counter's count or a gauge's double as bits; for a histogram one per bucket, one for +Inf and the sum as bits. */
    _Atomic uint64_t cells[];
};

const double metric_seconds[] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};

static struct metric *first;
/* Held while rendering and while a read function changes; counting takes no lock. */
static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;

/* Runs before main(), on one thread, so the list needs no lock. */
void metric_register(struct metric *m)
{
    struct metric **at = &first;
    while (*at && strcmp((*at)->name, m->name) < 0)
        at = &(*at)->next;
    assert(!*at || strcmp((*at)->name, m->name) != 0);
    m->next = *at;
    *at = m;
}

static size_t label_count(const struct metric *m)
{
    size_t n = 0;
    while (n < METRIC_LABELS_MAX && m->labels[n])
        n++;
    return n;
}

static size_t cell_count(const struct metric *m)
{
    return m->kind == METRIC_IS_HISTOGRAM ? m->bound_count + 2 : 1;
}

/* Values that Prometheus would reject, and overlong ones, are counted as "other". */
static const char *label_value(const char *value)
{
    if (!value || strlen(value) > LABEL_VALUE_MAX || !str_is_utf8(str_of(value)))
        return "other";
    return value;
}

/* FNV-1a; the NULs count, so that ("a", "bc") and ("ab", "c") differ. */
static uint64_t hash_of(const char *const *values, size_t count)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < count; i++) {
        const char *at = values[i];
        do
            hash = (hash ^ (unsigned char)*at) * UINT64_C(1099511628211);
        while (*at++);
    }
    return hash;
}

static bool series_is(const struct metric_series *s, uint64_t hash, const char *const *values, size_t count)
{
    if (s->hash != hash)
        return false;
    for (size_t i = 0; i < count; i++)
        if (strcmp(s->values[i], values[i]) != 0)
            return false;
    return true;
}

static struct metric_series *series_new(const struct metric *m, uint64_t hash, const char *const *values, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += strlen(values[i]) + 1;
    size_t cells = cell_count(m) * sizeof(uint64_t);
    struct metric_series *s = calloc(1, sizeof(*s) + cells + bytes);
    if (!s)
        return NULL;
    s->hash = hash;
    char *at = (char *)s + sizeof(*s) + cells;
    for (size_t i = 0; i < count; i++) {
        size_t len = strlen(values[i]) + 1;
        memcpy(at, values[i], len);
        s->values[i] = at;
        at += len;
    }
    return s;
}

/* True when the search ends at this slot: it holds the series, possibly added now, or malloc() failed (*ret NULL). */
static bool find_or_add_at(const struct metric *m, _Atomic(struct metric_series *) *slot, uint64_t hash,
                           const char *const *values, struct metric_series **ret)
{
    size_t count = label_count(m);
    struct metric_series *s = atomic_load_explicit(slot, memory_order_acquire);
    if (!s) {
        struct metric_series *mine = *ret = series_new(m, hash, values, count);
        if (!mine ||
            atomic_compare_exchange_strong_explicit(slot, &s, mine, memory_order_acq_rel, memory_order_acquire))
            return true;
        free(mine);
    }
    *ret = s;
    return series_is(s, hash, values, count);
}

/* False when every slot belongs to another series; slots are never freed, so that stays true. */
static bool find_or_add(struct metric *m, const char *const *values, struct metric_series **ret)
{
    uint64_t hash = hash_of(values, label_count(m));
    for (size_t i = 0; i < m->slot_count; i++)
        if (find_or_add_at(m, &m->slots[(hash + i) % m->slot_count], hash, values, ret))
            return true;
    return false;
}

/* NULL only when malloc() failed; the sample is then lost. */
static struct metric_series *series_of(struct metric *m, const char *const *given, size_t count)
{
    static const char *const others[METRIC_LABELS_MAX] = {"other", "other", "other"};
    assert(count == label_count(m));
    const char *values[METRIC_LABELS_MAX];
    for (size_t i = 0; i < count; i++)
        values[i] = label_value(given[i]);
    struct metric_series *s = NULL;
    if (!find_or_add(m, values, &s) && !find_or_add(m, others, &s))
        (void)find_or_add_at(m, &m->other, hash_of(others, count), others, &s);
    return s;
}

static uint64_t bits_of(double d)
{
    uint64_t bits;
    memcpy(&bits, &d, sizeof(bits));
    return bits;
}

static double double_of(uint64_t bits)
{
    double d;
    memcpy(&d, &bits, sizeof(d));
    return d;
}

static void cell_add(_Atomic uint64_t *cell, double by)
{
    uint64_t seen = atomic_load_explicit(cell, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(cell, &seen, bits_of(double_of(seen) + by), memory_order_relaxed,
                                                  memory_order_relaxed))
        ;
}

void metric_count(struct counter *c, uint64_t by, const char *const *values, size_t count)
{
    struct metric_series *s = series_of(&c->metric, values, count);
    if (s)
        atomic_fetch_add_explicit(&s->cells[0], by, memory_order_relaxed);
}

void metric_set(struct gauge *g, double value, const char *const *values, size_t count)
{
    struct metric_series *s = series_of(&g->metric, values, count);
    if (s)
        atomic_store_explicit(&s->cells[0], bits_of(value), memory_order_relaxed);
}

void metric_shift(struct gauge *g, double by, const char *const *values, size_t count)
{
    struct metric_series *s = series_of(&g->metric, values, count);
    if (s)
        cell_add(&s->cells[0], by);
}

void metric_observe(struct histogram *h, double value, const char *const *values, size_t count)
{
    struct metric_series *s = series_of(&h->metric, values, count);
    if (!s || isnan(value)) /* one NaN would make the sum NaN from then on */
        return;
    size_t bucket = 0;
    while (bucket < h->metric.bound_count && value > h->metric.bounds[bucket])
        bucket++;
    atomic_fetch_add_explicit(&s->cells[bucket], 1, memory_order_relaxed);
    cell_add(&s->cells[h->metric.bound_count + 1], value);
}

static void set_source(struct metric *m, double (*read)(void *context), void *context)
{
    assert(label_count(m) == 0);
    pthread_mutex_lock(&reading);
    m->read = read;
    m->context = context;
    pthread_mutex_unlock(&reading);
}

void counter_source(struct counter *c, double (*read)(void *context), void *context)
{
    set_source(&c->metric, read, context);
}

void gauge_source(struct gauge *g, double (*read)(void *context), void *context)
{
    set_source(&g->metric, read, context);
}

static void add_number(struct buf *out, double d)
{
    if (isnan(d))
        buf_addz(out, "NaN");
    else if (isinf(d))
        buf_addz(out, d > 0 ? "+Inf" : "-Inf");
    else
        buf_addf(out, "%.15g", d);
}

static void add_escaped(struct buf *out, const char *text, bool quotes)
{
    for (; *text; text++) {
        if (*text == '\\')
            buf_addz(out, "\\\\");
        else if (*text == '\n')
            buf_addz(out, "\\n");
        else if (*text == '"' && quotes)
            buf_addz(out, "\\\"");
        else
            buf_add(out, (struct str){text, 1});
    }
}

/* The name and labels of one sample, up to its value; `le` is the bucket's bound or NULL. */
static void add_sample(struct buf *out, const struct metric *m, const char *suffix, const struct metric_series *s,
                       const double *le)
{
    buf_addf(out, "%s%s", m->name, suffix);
    const char *before = "{";
    for (size_t i = 0; i < label_count(m); i++) {
        buf_addf(out, "%s%s=\"", before, m->labels[i]);
        add_escaped(out, s->values[i], true);
        buf_addz(out, "\"");
        before = ",";
    }
    if (le) {
        buf_addf(out, "%sle=\"", before);
        add_number(out, *le);
        buf_addz(out, "\"");
    }
    buf_addz(out, label_count(m) || le ? "} " : " ");
}

/* The count is the sum of the buckets just read, so that the two agree while other threads count. */
static void add_histogram(struct buf *out, const struct metric *m, struct metric_series *s)
{
    uint64_t seen = 0;
    for (size_t i = 0; i <= m->bound_count; i++) {
        double le = i < m->bound_count ? m->bounds[i] : (double)INFINITY;
        seen += atomic_load_explicit(&s->cells[i], memory_order_relaxed);
        add_sample(out, m, "_bucket", s, &le);
        buf_addf(out, "%llu\n", (unsigned long long)seen);
    }
    add_sample(out, m, "_sum", s, NULL);
    add_number(out, double_of(atomic_load_explicit(&s->cells[m->bound_count + 1], memory_order_relaxed)));
    buf_addz(out, "\n");
    add_sample(out, m, "_count", s, NULL);
    buf_addf(out, "%llu\n", (unsigned long long)seen);
}

static void add_series(struct buf *out, const struct metric *m, struct metric_series *s)
{
    if (m->kind == METRIC_IS_HISTOGRAM) {
        add_histogram(out, m, s);
        return;
    }
    add_sample(out, m, "", s, NULL);
    uint64_t cell = atomic_load_explicit(&s->cells[0], memory_order_relaxed);
    if (m->kind == METRIC_IS_COUNTER)
        buf_addf(out, "%llu", (unsigned long long)cell);
    else
        add_number(out, double_of(cell));
    buf_addz(out, "\n");
}

static void add_metric(struct buf *out, struct metric *m)
{
    static const char *const kinds[] = {"counter", "gauge", "histogram"};
    buf_addf(out, "# HELP %s ", m->name);
    add_escaped(out, m->help, false);
    buf_addf(out, "\n# TYPE %s %s\n", m->name, kinds[m->kind]);
    if (m->read) {
        buf_addf(out, "%s ", m->name);
        add_number(out, m->read(m->context));
        buf_addz(out, "\n");
        return;
    }
    /* Without labels there is one series, shown as 0 until something is counted. */
    if (label_count(m) == 0)
        (void)series_of(m, NULL, 0);
    for (size_t i = 0; i < m->slot_count; i++) {
        struct metric_series *s = atomic_load_explicit(&m->slots[i], memory_order_acquire);
        if (s)
            add_series(out, m, s);
    }
    struct metric_series *other = atomic_load_explicit(&m->other, memory_order_acquire);
    if (other)
        add_series(out, m, other);
}

void metrics_render(struct buf *out)
{
    pthread_mutex_lock(&reading);
    for (struct metric *m = first; m; m = m->next)
        add_metric(out, m);
    pthread_mutex_unlock(&reading);
}
