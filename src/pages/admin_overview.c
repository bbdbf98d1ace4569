/* GET /admin: the figures that matter, the last hour or day, the last freeze by layer, and what needs attention. */
#include <stdio.h>
#include <string.h>

#include "pages/admin.h"
#include "pages/chart.h"
#include "pages/routes.h"

#define WITHIN_MS 1000 /* layers have a freeze within a second */

static bool overview(struct page *p);

static void overview_handle(struct request *rq)
{
    struct page *p = admin_begin(rq);
    if (!p)
        return;
    page_set(p, "day", json_boolean(str_eq(request_query(rq, "span"), STR("day"))));
    admin_gather(p, "overview", &(struct page_read){.name = "stats", .path = STR("/v1/stats")}, 1, overview);
}

static struct str sentence_text(struct page *p, enum text id)
{
    return sentence(p->reader.sentences, p->reader.language, id);
}

static void set_chart(struct page *p, const char *name, const struct chart *c)
{
    AUTO(buf) struct buf svg = buf_new(65536);
    double top = chart_draw(c, &svg);
    page_set(p, name, json_pack("{s:s,s:I}", "svg", buf_str(&svg).at ? buf_str(&svg).at : "", "top", (json_int_t)top));
}

/* "-59 min" or "-23 h 45 min": the beginning of an interval. */
static json_t *ago(struct page *p, size_t intervals, int64_t step_s)
{
    if (intervals == 0)
        return json_stringn(sentence_text(p, TEXT_ADMIN_NOW).at, sentence_text(p, TEXT_ADMIN_NOW).len);
    AUTO(json) json_t *length = admin_duration(p, (int64_t)intervals * step_s);
    char text[64];
    (void)snprintf(text, sizeof text, "\u2212%s", json_string_value(length));
    return json_string(text);
}

/* The numbers behind a chart, the newest first. */
static json_t *rows_of(struct page *p, const json_t *series, const char *const *names, size_t count)
{
    json_t *rows = json_array();
    int64_t step_s = json_integer_value(json_object_get(series, "step_seconds"));
    size_t length = json_array_size(json_object_get(series, names[0]));
    for (size_t i = length; i-- > 0;) {
        json_t *row = json_pack("{s:o}", "ago", ago(p, length - 1 - i, step_s));
        bool any = false;
        for (size_t n = 0; n < count; n++) {
            json_t *value = json_array_get(json_object_get(series, names[n]), i);
            any |= json_number_value(value) > 0;
            if (json_is_real(value))
                json_object_set_new(row, names[n], admin_decimal(p, json_real_value(value), 2));
            else
                json_object_set(row, names[n], value);
        }
        if (any)
            json_array_append_new(rows, row);
        else
            json_decref(row);
    }
    return rows;
}

static void set_charts(struct page *p, const json_t *stats)
{
    static const char *const changes[] = {"freezes", "recoveries", "deletions"}, *const rate[] = {"per_second"};
    const char *span = json_is_true(json_object_get(p->values, "day")) ? "day" : "hour";
    const json_t *series = json_object_get(stats, span);
    const json_t *requests = json_object_get(json_object_get(stats, "requests"), span);
    set_chart(p, "requests_chart",
              &(struct chart){.lines = {json_object_get(requests, "per_second")},
                              .count = 1,
                              .label = sentence_text(p, TEXT_ADMIN_REQUESTS)});
    set_chart(p, "changes_chart",
              &(struct chart){.lines = {json_object_get(series, changes[0]), json_object_get(series, changes[1]),
                                        json_object_get(series, changes[2])},
                              .count = 3,
                              .least = 5,
                              .label = sentence_text(p, TEXT_ADMIN_CHANGES)});
    page_set(p, "requests_rows", rows_of(p, requests, rate, 1));
    page_set(p, "changes_rows", rows_of(p, series, changes, 3));
}

void admin_set_layers(struct page *p, const json_t *layers)
{
    static const char *const names[] = {"api", "calls", "billing", "events"};
    json_t *rows = json_array();
    bool has_broker = json_is_true(json_object_get(p->values, "has_broker"));
    for (size_t i = 0; json_is_object(layers) && i < COUNT_OF(names); i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "%s_ms", names[i]);
        const json_t *ms = json_object_get(layers, key);
        if (strcmp(names[i], "events") == 0 && !has_broker && !json_is_integer(ms))
            continue;
        AUTO(buf) struct buf bar = buf_new(1024);
        int64_t took = json_integer_value(ms);
        chart_bar(json_is_integer(ms) ? (int)(took * 100 / WITHIN_MS > 100 ? 100 : took * 100 / WITHIN_MS) : 0,
                  !json_is_integer(ms) ? "none"
                  : took > WITHIN_MS   ? "bad"
                                       : "good",
                  &bar);
        json_array_append_new(rows, json_pack("{s:s,s:O?,s:b,s:s}", "layer", names[i], "ms", ms, "has",
                                              json_is_integer(ms), "bar", buf_str(&bar).at));
    }
    page_set(p, "layers", rows);
}

static void set_attention(struct page *p, json_t *attention)
{
    size_t i;
    json_t *item;
    json_array_foreach(attention, i, item)
    {
        json_object_set_new(item, "left", admin_duration(p, admin_seconds_until(json_object_get(item, "at"))));
        admin_set_short(item, "customer_id");
    }
}

/* Everything that is more than it should be has a class of its own. */
static void set_figures(struct page *p, const json_t *stats)
{
    const json_t *erasures = json_object_get(stats, "erasures"), *codes = json_object_get(stats, "codes_today");
    int64_t mailed = json_integer_value(json_object_get(codes, "mailed"));
    int64_t delivered = json_integer_value(json_object_get(codes, "delivered"));
    page_set(p, "share", admin_decimal(p, mailed ? 100.0 * (double)delivered / (double)mailed : 100.0, 1));
    page_set(p, "oldest", admin_duration(p, json_integer_value(json_object_get(erasures, "oldest_seconds"))));
    page_set(p, "deadline", admin_duration(p, json_integer_value(json_object_get(erasures, "deadline_seconds"))));
    const json_t *mail = json_object_get(stats, "mail");
    page_set(p, "mail_age", admin_duration(p, json_integer_value(json_object_get(mail, "oldest_seconds"))));
}

static bool overview(struct page *p)
{
    if (admin_failed(p))
        return true;
    json_t *stats = json_object_get(p->values, "stats");
    set_figures(p, stats);
    page_set(p, "several_instances", json_boolean(json_array_size(json_object_get(stats, "instances")) > 1));
    set_charts(p, stats);
    page_set(p, "has_broker", json_incref(json_object_get(stats, "has_broker")));
    admin_set_layers(p, json_object_get(json_object_get(stats, "last_freeze"), "layers"));
    set_attention(p, json_object_get(stats, "attention"));
    return page_write(p, "admin-overview", TEXT_ADMIN_OVERVIEW, 200);
}

const struct route admin_overview_routes[] = {
    {.method = METHOD_GET, .path = "/admin", .handle = overview_handle},
    {0},
};
