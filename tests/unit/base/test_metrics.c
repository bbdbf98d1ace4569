#include "base/metrics.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

METRIC_COUNTER(plain, "reclaim_test_plain_total", "Counted without labels.");
METRIC_COUNTER(untouched, "reclaim_test_untouched_total", "Never counted.");
METRIC_COUNTER(answers, "reclaim_test_answers_total", "Answers given, with a back\\slash\nand a line.", "route",
               "status");
METRIC_COUNTER(hostile, "reclaim_test_hostile_total", "Label values that need escaping.", "value");
METRIC_COUNTER(flooded, "reclaim_test_flooded_total", "More series than there is room for.", "value");
METRIC_COUNTER(other_first, "reclaim_test_other_first_total", "A value that is \"other\" by itself.", "value");
METRIC_COUNTER(raced, "reclaim_test_raced_total", "Counted by many threads.", "who");
METRIC_GAUGE(level, "reclaim_test_level", "Set and shifted.", "side");
METRIC_GAUGE(asked, "reclaim_test_asked", "Read when asked for.");
METRIC_COUNTER(asked_total, "reclaim_test_asked_total", "Read when asked for.");
METRIC_GAUGE(odd, "reclaim_test_odd", "Values that are no numbers.", "kind");
METRIC_HISTOGRAM(took, "reclaim_test_took_seconds", "Durations.", metric_seconds, "what");
static const double sizes[] = {1, 10, 100};
METRIC_HISTOGRAM(batch, "reclaim_test_batch_size", "Sizes.", sizes);
METRIC_HISTOGRAM(raced_seconds, "reclaim_test_raced_seconds", "Observed by many threads.", sizes, "who");

static struct buf rendered(void)
{
    struct buf out = buf_new((size_t)1 << 20);
    metrics_render(&out);
    buf_add(&out, (struct str){"", 1});
    assert_int_equal(out.failed, OK);
    return out;
}

/* The value of the one line that starts with `sample` and a space. */
static const char *value_of(const char *sample)
{
    static char value[64];
    AUTO(buf) struct buf out = rendered();
    size_t len = strlen(sample);
    int found = 0;
    for (const char *line = out.at; *line; line = strchr(line, '\n') + 1) {
        if (strncmp(line, sample, len) != 0 || line[len] != ' ')
            continue;
        found++;
        snprintf(value, sizeof(value), "%.*s", (int)strcspn(line + len + 1, "\n"), line + len + 1);
    }
    return found == 1 ? value : found ? "(repeated)" : "(missing)";
}

#define VALUE_IS(sample, value) assert_string_equal(value_of(sample), value)

/* The format's grammar, line by line: https://prometheus.io/docs/instrumenting/exposition_formats/ */

static bool takes_name(const char **at, bool colons)
{
    const char *start = *at;
    while ((**at >= 'a' && **at <= 'z') || (**at >= 'A' && **at <= 'Z') || **at == '_' || (colons && **at == ':') ||
           (*at > start && **at >= '0' && **at <= '9'))
        (*at)++;
    return *at > start;
}

static bool takes_label(const char **at)
{
    if (!takes_name(at, false) || *(*at)++ != '=' || *(*at)++ != '"')
        return false;
    for (; **at != '"'; (*at)++) {
        if (**at == '\n' || **at == '\0')
            return false;
        if (**at == '\\' && *++*at != '\\' && **at != '"' && **at != 'n')
            return false;
    }
    (*at)++;
    return true;
}

static bool takes_labels(const char **at)
{
    if (**at != '{')
        return true;
    do {
        (*at)++;
        if (!takes_label(at))
            return false;
    } while (**at == ',');
    return *(*at)++ == '}';
}

static bool takes_value(const char **at)
{
    char *end;
    if (**at == ' ' || **at == '\n')
        return false;
    strtod(*at, &end); /* NaN, +Inf and -Inf too */
    *at = end;
    return **at == '\n';
}

struct family {
    char name[128], type[16];
};

static bool belongs(const struct family *f, const char *name, size_t len)
{
    size_t base = strlen(f->name);
    if (len < base || strncmp(name, f->name, base) != 0)
        return false;
    if (strcmp(f->type, "histogram") != 0)
        return len == base;
    const char *suffix = name + base;
    return (len == base + 7 && !strncmp(suffix, "_bucket", 7)) || (len == base + 4 && !strncmp(suffix, "_sum", 4)) ||
           (len == base + 6 && !strncmp(suffix, "_count", 6));
}

static bool is_sample_of(const char *line, const struct family *f)
{
    const char *at = line;
    if (!takes_name(&at, true) || !belongs(f, line, (size_t)(at - line)))
        return false;
    return takes_labels(&at) && *at++ == ' ' && takes_value(&at);
}

static bool is_exposition(const char *text)
{
    struct family f = {{0}, {0}};
    char name[128];
    for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
        if (!strchr(line, '\n'))
            return false;
        if (sscanf(line, "# HELP %127s ", name) == 1) {
            if (strcmp(name, f.name) <= 0) /* in order means none twice */
                return false;
            snprintf(f.name, sizeof(f.name), "%s", name);
        } else if (sscanf(line, "# TYPE %127s %15s", name, f.type) == 2) {
            if (strcmp(name, f.name) != 0)
                return false;
        } else if (!is_sample_of(line, &f)) {
            return false;
        }
    }
    return true;
}

static void the_checker_knows_wrong_lines(void **state UNUSED)
{
    static const char *const wrong[] = {
        "b 1\n",          "a 1", "a{x=\"1\" 1\n", "a{x=\"\\q\"} 1\n", "a one\n", "a{x=\"\n\"} 1\n",
        "a{2x=\"\"} 1\n", "a\n", "a_sum 1\n",     "a 1 x\n"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        char text[128];
        snprintf(text, sizeof(text), "# HELP a b\n# TYPE a gauge\n%s", wrong[i]);
        assert_false(is_exposition(text));
    }
    assert_true(is_exposition("# HELP a b\n# TYPE a gauge\na{x=\"\\\\\\n\\\"\",y=\"\"} +Inf\na 1e-05\n"));
    assert_false(is_exposition("# HELP a b\n# TYPE a gauge\n# HELP a b\n"));
}

static void everything_rendered_is_valid_exposition(void **state UNUSED)
{
    counter_add(&hostile, 1, "quote\" back\\ line\n end");
    gauge_set(&odd, NAN, "nan");
    gauge_set(&odd, -INFINITY, "inf");
    histogram_observe(&took, 0.2, "probe");
    AUTO(buf) struct buf out = rendered();
    assert_true(is_exposition(out.at));
    assert_non_null(strstr(out.at,
                           "# HELP reclaim_test_answers_total Answers given, with a back\\\\slash\\nand a line.\n"
                           "# TYPE reclaim_test_answers_total counter\n"));
    assert_non_null(strstr(out.at, "# TYPE reclaim_test_took_seconds histogram\n"));
    VALUE_IS("reclaim_test_hostile_total{value=\"quote\\\" back\\\\ line\\n end\"}", "1");
    VALUE_IS("reclaim_test_odd{kind=\"nan\"}", "NaN");
    VALUE_IS("reclaim_test_odd{kind=\"inf\"}", "-Inf");
}

static void a_counter_without_labels_shows_zero_before_it_counts(void **state UNUSED)
{
    VALUE_IS("reclaim_test_untouched_total", "0");
    counter_add(&plain, 2);
    counter_add(&plain, 3);
    VALUE_IS("reclaim_test_plain_total", "5");
}

static void each_combination_of_labels_counts_for_itself(void **state UNUSED)
{
    counter_add(&answers, 1, "a", "bc");
    counter_add(&answers, 2, "ab", "c");
    counter_add(&answers, 4, "a", "bc");
    VALUE_IS("reclaim_test_answers_total{route=\"a\",status=\"bc\"}", "5");
    VALUE_IS("reclaim_test_answers_total{route=\"ab\",status=\"c\"}", "2");
}

static void gauges_go_up_and_down(void **state UNUSED)
{
    gauge_set(&level, 10, "left");
    gauge_add(&level, -12.5, "left");
    gauge_add(&level, 1, "right");
    VALUE_IS("reclaim_test_level{side=\"left\"}", "-2.5");
    VALUE_IS("reclaim_test_level{side=\"right\"}", "1");
}

static double read_double(void *context)
{
    return *(double *)context;
}

static void a_source_is_read_each_time_until_it_is_taken_away(void **state UNUSED)
{
    double now = 7;
    gauge_source(&asked, read_double, &now);
    counter_source(&asked_total, read_double, &now);
    VALUE_IS("reclaim_test_asked", "7");
    now = 1048576.25;
    VALUE_IS("reclaim_test_asked", "1048576.25");
    VALUE_IS("reclaim_test_asked_total", "1048576.25");
    gauge_source(&asked, NULL, NULL);
    counter_source(&asked_total, NULL, NULL);
    VALUE_IS("reclaim_test_asked", "0");
}

static void histogram_buckets_are_cumulative_and_include_their_bound(void **state UNUSED)
{
    static const double seen[] = {0, 1, 1.5, 10, 99, 1000};
    for (size_t i = 0; i < COUNT_OF(seen); i++)
        histogram_observe(&batch, seen[i]);
    histogram_observe(&batch, NAN);
    VALUE_IS("reclaim_test_batch_size_bucket{le=\"1\"}", "2");
    VALUE_IS("reclaim_test_batch_size_bucket{le=\"10\"}", "4");
    VALUE_IS("reclaim_test_batch_size_bucket{le=\"100\"}", "5");
    VALUE_IS("reclaim_test_batch_size_bucket{le=\"+Inf\"}", "6");
    VALUE_IS("reclaim_test_batch_size_count", "6");
    VALUE_IS("reclaim_test_batch_size_sum", "1111.5");
}

static void series_past_the_ceiling_count_as_other(void **state UNUSED)
{
    for (int i = 0; i < METRIC_SERIES_MAX + 50; i++) {
        char value[16];
        snprintf(value, sizeof(value), "v%d", i);
        counter_add(&flooded, 1, value);
        if (i == 0)
            counter_add(&other_first, 1, "other");
        counter_add(&other_first, 1, value);
    }
    counter_add(&flooded, 1, "v0");
    VALUE_IS("reclaim_test_flooded_total{value=\"v0\"}", "2");
    VALUE_IS("reclaim_test_flooded_total{value=\"v300\"}", "(missing)");
    VALUE_IS("reclaim_test_flooded_total{value=\"other\"}", "50");
    VALUE_IS("reclaim_test_other_first_total{value=\"other\"}", "52");
}

static void label_values_that_are_no_text_count_as_other(void **state UNUSED)
{
    char longest[200];
    memset(longest, 'x', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    counter_add(&hostile, 1, "\xc0\xaf");
    counter_add(&hostile, 1, longest);
    counter_add(&hostile, 1, NULL);
    VALUE_IS("reclaim_test_hostile_total{value=\"other\"}", "3");
}

static void a_full_buffer_ends_the_rendering_safely(void **state UNUSED)
{
    for (size_t ceiling = 0; ceiling < 600; ceiling += 7) {
        AUTO(buf) struct buf out = buf_new(ceiling);
        metrics_render(&out);
        assert_int_equal(out.failed, ERR_MEMORY);
        assert_true(out.len <= ceiling);
    }
}

#define THREADS 4
#define ROUNDS 5000

static atomic_bool counting;

static void *count_a_lot(void *context)
{
    (void)context;
    for (int i = 0; i < ROUNDS; i++) {
        char who[16];
        snprintf(who, sizeof(who), "w%d", i % 40);
        counter_add(&raced, 1, who);
        histogram_observe(&raced_seconds, i % 3 ? 2 : 0.5, who);
    }
    return NULL;
}

static void *render_meanwhile(void *context)
{
    bool *valid = context;
    while (atomic_load(&counting)) {
        struct buf out = buf_new((size_t)1 << 20);
        metrics_render(&out);
        buf_add(&out, (struct str){"", 1});
        *valid = *valid && !out.failed && is_exposition(out.at);
        buf_free(&out);
    }
    return NULL;
}

static void nothing_is_lost_when_many_threads_count(void **state UNUSED)
{
    bool valid = true;
    pthread_t counters[THREADS], renderer;
    atomic_store(&counting, true);
    assert_int_equal(pthread_create(&renderer, NULL, render_meanwhile, &valid), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&counters[i], NULL, count_a_lot, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(counters[i], NULL);
    atomic_store(&counting, false);
    pthread_join(renderer, NULL);
    assert_true(valid);

    for (int i = 0; i < 40; i++) {
        char sample[96];
        snprintf(sample, sizeof(sample), "reclaim_test_raced_total{who=\"w%d\"}", i);
        VALUE_IS(sample, "500");
        snprintf(sample, sizeof(sample), "reclaim_test_raced_seconds_count{who=\"w%d\"}", i);
        VALUE_IS(sample, "500");
    }
}

static double read_freed(void *context)
{
    return *(double *)context;
}

static void *come_and_go(void *context)
{
    (void)context;
    for (int i = 0; i < 300; i++) {
        double *here = malloc(sizeof(*here));
        *here = i;
        gauge_source(&asked, read_freed, here);
        gauge_source(&asked, NULL, NULL);
        free(here);
    }
    return NULL;
}

static void a_source_taken_away_is_not_running_any_more(void **state UNUSED)
{
    bool valid = true;
    pthread_t owner, renderer;
    atomic_store(&counting, true);
    assert_int_equal(pthread_create(&renderer, NULL, render_meanwhile, &valid), 0);
    assert_int_equal(pthread_create(&owner, NULL, come_and_go, NULL), 0);
    pthread_join(owner, NULL);
    atomic_store(&counting, false);
    pthread_join(renderer, NULL);
    assert_true(valid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_checker_knows_wrong_lines),
        cmocka_unit_test(everything_rendered_is_valid_exposition),
        cmocka_unit_test(a_counter_without_labels_shows_zero_before_it_counts),
        cmocka_unit_test(each_combination_of_labels_counts_for_itself),
        cmocka_unit_test(gauges_go_up_and_down),
        cmocka_unit_test(a_source_is_read_each_time_until_it_is_taken_away),
        cmocka_unit_test(histogram_buckets_are_cumulative_and_include_their_bound),
        cmocka_unit_test(series_past_the_ceiling_count_as_other),
        cmocka_unit_test(label_values_that_are_no_text_count_as_other),
        cmocka_unit_test(a_full_buffer_ends_the_rendering_safely),
        cmocka_unit_test(nothing_is_lost_when_many_threads_count),
        cmocka_unit_test(a_source_taken_away_is_not_running_any_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
