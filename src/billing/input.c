#include "billing/input.h"

#include <string.h>

#include "base/json.h"

#define PERIOD_MOST_S INT64_C(315360000) /* 3650 days */

static const struct complaint no_object = {"INVALID_BODY", "The body must be one JSON object, in UTF-8."},
                              bad_account = {"INVALID_ID", "billing_account_id must be a UUID."},
                              bad_amount = {"INVALID_AMOUNT",
                                            "amount_micros must be a whole number from 1 to 9007199254740992."},
                              bad_reference = {"INVALID_REFERENCE",
                                               "reference must be a text of 1 to 255 bytes without control characters, "
                                               "and not begin with \"sub:\"."},
                              bad_time = {"INVALID_TIME",
                                          "Times are like 2026-03-18T12:00:00Z, with an offset or Z (RFC 3339)."},
                              bad_period = {"INVALID_PERIOD",
                                            "Say either period, like \"30d\" or \"12h\", or period_seconds; from one "
                                            "second to 3650 days, in whole seconds."};

static enum err complain(struct complaint *ret, struct complaint about)
{
    *ret = about;
    return ERR_INPUT;
}

/* Reads digits at `at`; -1 when there are others. */
static int number_at(struct str s, size_t at, size_t digits)
{
    int n = 0;
    if (at + digits > s.len)
        return -1;
    for (size_t i = at; i < at + digits; i++) {
        if (s.at[i] < '0' || s.at[i] > '9')
            return -1;
        n = n * 10 + (s.at[i] - '0');
    }
    return n;
}

static bool day_exists(int year, int month, int day)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return month >= 1 && month <= 12 && day >= 1 && day <= days[month - 1] + (leap && month == 2);
}

static bool is_offset(struct str s)
{
    if (s.len == 1)
        return s.at[0] == 'Z' || s.at[0] == 'z';
    int hours = number_at(s, 1, 2), minutes = number_at(s, 4, 2);
    return s.len == 6 && (s.at[0] == '+' || s.at[0] == '-') && s.at[3] == ':' && hours >= 0 && hours <= 14 &&
           minutes >= 0 && minutes <= 59;
}

bool time_is_rfc3339(struct str s)
{
    static const char shape[] = "dddd-dd-ddTdd:dd:dd";
    size_t at = sizeof shape - 1;
    if (s.len <= at)
        return false;
    for (size_t i = 0; i < at; i++)
        if (shape[i] != 'd' && s.at[i] != shape[i] && !(shape[i] == 'T' && s.at[i] == 't'))
            return false;
    int year = number_at(s, 0, 4), month = number_at(s, 5, 2), day = number_at(s, 8, 2), hour = number_at(s, 11, 2),
        minute = number_at(s, 14, 2), second = number_at(s, 17, 2);
    if (year < 1970 || !day_exists(year, month, day) || hour < 0 || hour > 23 || minute < 0 || minute > 59 ||
        second < 0 || second > 59)
        return false;
    if (s.at[at] == '.') {
        size_t digits = 0;
        while (number_at(s, at + 1 + digits, 1) >= 0)
            digits++;
        if (digits == 0 || digits > 9)
            return false;
        at += 1 + digits;
    }
    return is_offset((struct str){s.at + at, s.len - at});
}

static enum err read_account(const json_t *body, char ret[37], struct complaint *complaint)
{
    struct str id;
    if (json_get_str(body, "billing_account_id", &id) || !str_is_uuid(id) || str_copy(id, ret, 37))
        return complain(complaint, bad_account);
    str_lower(ret, 36);
    return OK;
}

static enum err read_amount(const json_t *body, int64_t *ret, struct complaint *complaint)
{
    const json_t *amount = json_object_get(body, "amount_micros");
    if (!json_is_integer(amount))
        return complain(complaint, bad_amount);
    json_int_t n = json_integer_value(amount);
    if (n < 1 || n > AMOUNT_MOST)
        return complain(complaint, bad_amount);
    *ret = n;
    return OK;
}

static bool is_reference(struct str s)
{
    if (s.len == 0 || s.len > REFERENCE_BYTES_MOST || str_starts(s, STR("sub:"))) /* those are subscriptions' own */
        return false;
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.at[i] < ' ' || s.at[i] == 0x7f)
            return false;
    return true;
}

/* A text that may be absent or null: then *ret stays NULL. */
static enum err read_text(struct arena *arena, const json_t *body, const char *key, bool (*fits)(struct str),
                          struct complaint wrong, const char **ret, struct complaint *complaint)
{
    struct str text;
    *ret = NULL;
    const json_t *value = json_object_get(body, key);
    if (!value || json_is_null(value))
        return OK;
    if (json_get_str(body, key, &text) || !fits(text))
        return complain(complaint, wrong);
    *ret = arena_copy(arena, text).at;
    return *ret ? OK : ERR_MEMORY;
}

enum err charge_read(struct arena *arena, struct str text, struct charge_request *ret, struct complaint *complaint)
{
    AUTO(json) json_t *body = json_read_object(text, NULL);
    if (!body)
        return complain(complaint, no_object);
    enum err e = read_account(body, ret->account_id, complaint);
    if (e || (e = read_amount(body, &ret->amount_micros, complaint)) ||
        (e = read_text(arena, body, "reference", is_reference, bad_reference, &ret->reference, complaint)))
        return e;
    if (!ret->reference)
        return complain(complaint, bad_reference);
    return read_text(arena, body, "occurred_at", time_is_rfc3339, bad_time, &ret->occurred_at, complaint);
}

static enum err read_period(const json_t *body, int64_t *ret, struct complaint *complaint)
{
    const json_t *seconds = json_object_get(body, "period_seconds");
    struct str duration;
    int64_t ms = 0;
    enum err e = json_get_str(body, "period", &duration);
    if ((e == OK) == (seconds != NULL) || e == ERR_INPUT)
        return complain(complaint, bad_period);
    if (seconds)
        *ret = json_is_integer(seconds) ? json_integer_value(seconds) : 0;
    else
        *ret = str_to_duration_ms(duration, &ms) || ms % 1000 != 0 ? 0 : ms / 1000;
    return *ret < 1 || *ret > PERIOD_MOST_S ? complain(complaint, bad_period) : OK;
}

enum err subscribe_read(struct arena *arena, struct str text, struct subscribe_request *ret,
                        struct complaint *complaint)
{
    AUTO(json) json_t *body = json_read_object(text, NULL);
    if (!body)
        return complain(complaint, no_object);
    enum err e = read_account(body, ret->account_id, complaint);
    if (e || (e = read_amount(body, &ret->amount_micros, complaint)) ||
        (e = read_period(body, &ret->period_seconds, complaint)) ||
        (e = read_text(arena, body, "reference", is_reference, bad_reference, &ret->reference, complaint)))
        return e;
    return read_text(arena, body, "first_charge_at", time_is_rfc3339, bad_time, &ret->first_charge_at, complaint);
}
