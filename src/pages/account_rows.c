/* What `/account` shows of the endpoints' answers: rows in words, durations, and how much of the grace is left. */
#include <string.h>
#include <time.h>

#include "pages/account.h"

#define MINUTE_S INT64_C(60)
#define HOUR_S INT64_C(3600)
#define DAY_S INT64_C(86400)

/* --- durations --- */

static const struct {
    int64_t seconds;
    enum text one, other;
} units[] = {{DAY_S, TEXT_ACCOUNT_DAYS_ONE, TEXT_ACCOUNT_DAYS_OTHER},
             {HOUR_S, TEXT_ACCOUNT_HOURS_ONE, TEXT_ACCOUNT_HOURS_OTHER},
             {MINUTE_S, TEXT_ACCOUNT_MINUTES_ONE, TEXT_ACCOUNT_MINUTES_OTHER},
             {1, TEXT_ACCOUNT_SECONDS_ONE, TEXT_ACCOUNT_SECONDS_OTHER}};

/* In the largest unit that it is a whole number of. */
void account_set_duration(struct page *p, const char *name, int64_t seconds)
{
    size_t unit = 0;
    while (unit + 1 < COUNT_OF(units) && (seconds < units[unit].seconds || seconds % units[unit].seconds))
        unit++;
    int64_t count = seconds / units[unit].seconds;
    AUTO(buf) struct buf words = buf_new(1024);
    AUTO(json) json_t *values = json_pack("{s:I}", "n", (json_int_t)count);
    text_fill_sentence(&p->reader, count == 1 ? units[unit].one : units[unit].other, values, &words);
    page_set_text(p, name, buf_str(&words));
}

enum err account_parse_time(const char *text, int64_t *ret_us)
{
    /* Where each number begins, its length and its bounds; the fraction is optional. */
    static const struct {
        size_t at, len;
        int64_t min, max;
    } parts[] = {{0, 4, 1970, 9999}, {5, 2, 1, 12}, {8, 2, 1, 31}, {11, 2, 0, 23}, {14, 2, 0, 59}, {17, 2, 0, 60}};
    int64_t number[COUNT_OF(parts)], fraction = 0;
    struct str all = str_of(text);
    if (!all.at || all.len < sizeof "2026-12-15T14:32:07Z" - 1)
        return ERR_INPUT;
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        if (str_to_i64((struct str){all.at + parts[i].at, parts[i].len}, parts[i].min, parts[i].max, &number[i]))
            return ERR_INPUT;
    if (all.len == sizeof "2026-12-15T14:32:07.123456Z" - 1 &&
        str_to_i64((struct str){all.at + 20, 6}, 0, 999999, &fraction))
        return ERR_INPUT;
    struct tm civil = {.tm_year = (int)number[0] - 1900,
                       .tm_mon = (int)number[1] - 1,
                       .tm_mday = (int)number[2],
                       .tm_hour = (int)number[3],
                       .tm_min = (int)number[4],
                       .tm_sec = (int)number[5]};
    *ret_us = (int64_t)timegm(&civil) * 1000000 + fraction;
    return OK;
}

static enum err member_time(const json_t *object, const char *name, int64_t *ret_us)
{
    return account_parse_time(json_string_value(json_object_get(object, name)), ret_us);
}

/* --- what is deleted, and what is kept --- */

/* Reclaim's own participants have sentences of their own; charges and their corrections stay, without what is personal. */
static bool is_named(const json_t *participant, const char *name)
{
    const char *its = json_string_value(json_object_get(participant, "name"));
    return its && strcmp(its, name) == 0;
}

static bool is_money(const json_t *participant)
{
    return is_named(participant, "reclaim.charges") || is_named(participant, "reclaim.adjustments");
}

/* Labels of what is deleted, and what stays: for everyone. Without an answer the page says it in general. */
void account_set_public(struct page *p, const json_t *participants)
{
    json_t *erased = json_array();
    const json_t *items = json_object_get(participants, "items");
    for (size_t i = 0; i < json_array_size(items); i++) {
        const json_t *one = json_array_get(items, i);
        if (is_money(one))
            page_set(p, "keeps_charges", json_true());
        else if (is_named(one, "reclaim.calls"))
            page_set(p, "erases_calls", json_true());
        else
            json_array_append(erased, json_object_get(one, "label"));
    }
    page_set(p, "erased", erased);
    page_set(p, "unnamed", json_incref(json_object_get(participants, "unnamed")));
    page_set(p, "kept_columns", json_incref(json_object_get(participants, "kept")));
    const json_t *grace = json_object_get(participants, "grace_seconds");
    account_set_duration(p, "grace", grace ? json_integer_value(grace) : p->pages->config.grace_ms / 1000);
    account_set_duration(p, "backups", p->pages->config.backup_retention_ms / 1000);
    account_set_duration(p, "audit", p->pages->config.audit_retention_ms / 1000);
    page_set(p, "has_backups", json_boolean(p->pages->config.backup_retention_ms >= 1000));
}

/* "call_recordings" → "Call recordings", for a participant without a label. */
static json_t *words_of_name(const char *name)
{
    char words[80];
    size_t len = 0;
    for (; name[len] && len + 1 < sizeof words; len++)
        words[len] = strchr("_.-", name[len]) ? ' ' : name[len];
    words[len] = '\0';
    if (words[0] >= 'a' && words[0] <= 'z')
        words[0] = (char)(words[0] - 'a' + 'A');
    return json_stringn(words, len);
}

/* The rows of one participant: counted, counted up to a bound, or known to the service alone. */
static json_t *row_of(const json_t *participant)
{
    const json_t *label = json_object_get(participant, "label"), *rows = json_object_get(participant, "rows");
    const char *name = json_string_value(json_object_get(participant, "name"));
    if (!name || (json_is_integer(rows) && json_integer_value(rows) == 0))
        return NULL;
    json_t *row = json_object();
    if (is_named(participant, "reclaim.calls"))
        json_object_set_new(row, "own", json_string("own_calls"));
    json_object_set_new(row, "label",
                        json_string_length(label) ? json_incref((json_t *)(uintptr_t)label) : words_of_name(name));
    json_object_set_new(row, "rows", json_is_integer(rows) ? json_integer(json_integer_value(rows)) : json_null());
    json_object_set_new(row, "more", json_boolean(json_is_true(json_object_get(participant, "more"))));
    return row;
}

void account_set_preview(struct page *p, const json_t *preview)
{
    json_t *rows = json_array();
    json_int_t charges = 0;
    const json_t *participants = json_object_get(preview, "participants");
    for (size_t i = 0; i < json_array_size(participants); i++) {
        const json_t *one = json_array_get(participants, i);
        json_t *row = row_of(one);
        if (row && is_money(one))
            charges += json_integer_value(json_object_get(row, "rows"));
        else if (row)
            json_array_append(rows, row);
        json_decref(row);
    }
    page_set(p, "charges", json_integer(charges));
    page_set(p, "keeps_charges", json_boolean(charges > 0));
    page_set(p, "preview_rows", rows);
}

/* --- a frozen account --- */

/* Each layer, and how many milliseconds after the freeze it had it. */
static json_t *layers_of(const json_t *customer, int64_t since_us)
{
    static const char *const layers[] = {"api", "calls", "billing"};
    static const char *const words[] = {"stopped_api", "stopped_calls", "stopped_billing"};
    json_t *stopped = json_array();
    for (size_t i = 0; i < COUNT_OF(layers); i++) {
        int64_t at_us = since_us;
        bool applied = !member_time(json_object_get(customer, "freeze"), layers[i], &at_us);
        json_array_append_new(stopped, json_pack("{s:s,s:b,s:I}", "layer", words[i], "applied", applied, "ms",
                                                 (json_int_t)(at_us > since_us ? (at_us - since_us) / 1000 : 0)));
    }
    return stopped;
}

void account_set_countdown(struct page *p, const json_t *customer, const char *now)
{
    int64_t since_us, until_us, now_us;
    if (member_time(customer, "tm_deletion_scheduled", &since_us) ||
        member_time(customer, "deletion_effective_at", &until_us) || account_parse_time(now, &now_us))
        return;
    int64_t left_s = until_us > now_us ? (until_us - now_us) / 1000000 : 0;
    page_set(p, "left",
             json_pack("{s:I,s:I,s:I}", "days", (json_int_t)(left_s / DAY_S), "hours",
                       (json_int_t)(left_s % DAY_S / HOUR_S), "minutes", (json_int_t)(left_s % HOUR_S / MINUTE_S)));
    page_set(p, "is_due", json_boolean(left_s == 0));
    page_set(p, "passed_s", json_integer(now_us > since_us ? (now_us - since_us) / 1000000 : 0));
    page_set(p, "whole_s", json_integer(until_us > since_us ? (until_us - since_us) / 1000000 : 1));
    json_t *stopped = layers_of(customer, since_us);
    page_set(p, "stopped", stopped);
    for (size_t i = 0; i < json_array_size(stopped); i++)
        if (!json_is_true(json_object_get(json_array_get(stopped, i), "applied")))
            page_set(p, "stopping", json_true());
}
