#include "billing/input.h"

#define PERIOD_MOST_S INT64_C(315360000) /* 3650 days */

#define TIME_MESSAGE "Times are like 2026-03-18T12:00:00Z, with an offset or Z (RFC 3339)."
#define REFERENCE_MESSAGE                                                                                              \
    "reference must be a text of 1 to 255 bytes without control characters, and not begin with \"sub:\"."
#define PERIOD_MESSAGE                                                                                                 \
    "Say either period, which is \"month\", \"year\" or like \"30d\" or \"12h\", or period_seconds; from one second "  \
    "to "                                                                                                              \
    "3650 days, in whole seconds."

static bool is_reference(struct str s);
static bool is_reason(struct str s);
static bool is_period(struct str s);

/* Of both requests: */
static const struct field account = {.name = "billing_account_id",
                                     .required = true,
                                     .code = "INVALID_ID",
                                     .message = "billing_account_id must be a UUID."};
static const struct field amount = {.name = "amount_micros",
                                    .required = true,
                                    .code = "INVALID_AMOUNT",
                                    .message = "amount_micros must be a whole number from 1 to 9007199254740992."};

/* Of a charge: */
static const struct field charge_reference = {.name = "reference",
                                              .required = true,
                                              .fits = is_reference,
                                              .code = "INVALID_REFERENCE",
                                              .message = REFERENCE_MESSAGE};
static const struct field started_at = {
    .name = "started_at", .fits = time_is_rfc3339, .code = "INVALID_TIME", .message = TIME_MESSAGE};
static const struct field occurred_at = {
    .name = "occurred_at", .fits = time_is_rfc3339, .code = "INVALID_TIME", .message = TIME_MESSAGE};

/* Of an adjustment: */
static const struct field adjustment_amount = {
    .name = "amount_micros",
    .required = true,
    .code = "INVALID_AMOUNT",
    .message = "amount_micros must be a whole number from -9007199254740992 to 9007199254740992, and not 0."};
static const struct field adjustment_reason = {.name = "reason",
                                               .required = true,
                                               .bytes_max = ADJUSTMENT_REASON_MAX,
                                               .fits = is_reason,
                                               .code = "INVALID_REASON",
                                               .message = "reason must be a text of 1 to 1000 bytes."};

/* Of a subscription: */
static const struct field period = {
    .name = "period", .refuses_null = true, .fits = is_period, .code = "INVALID_PERIOD", .message = PERIOD_MESSAGE};
static const struct field period_seconds = {
    .name = "period_seconds", .refuses_null = true, .code = "INVALID_PERIOD", .message = PERIOD_MESSAGE};
static const struct field subscription_reference = {
    .name = "reference", .fits = is_reference, .code = "INVALID_REFERENCE", .message = REFERENCE_MESSAGE};
static const struct field first_charge_at = {
    .name = "first_charge_at", .fits = time_is_rfc3339, .code = "INVALID_TIME", .message = TIME_MESSAGE};

/* The number of so many digits at `at`; -1 when there are others. */
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

static void read_account(struct fields *f, char ret[37])
{
    struct str id = field_text(f, &account);
    if (id.at && (!str_is_uuid(id) || str_copy(id, ret, 37)))
        fields_fail(f, &account, "must be a UUID");
    else if (id.at)
        str_lower(ret, 36);
}

static bool is_reference(struct str s)
{
    if (s.len == 0 || s.len > REFERENCE_BYTES_MOST || str_starts(s, STR("sub:"))) /* reserved for subscriptions */
        return false;
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.at[i] < ' ' || s.at[i] == 0x7f)
            return false;
    return true;
}

struct fields billing_fields(struct arena *arena, struct str body)
{
    return fields_read(arena, body, "INVALID_BODY", "The body must be one JSON object, in UTF-8.");
}

void charge_read(struct fields *f, struct charge_request *ret)
{
    read_account(f, ret->account_id);
    (void)field_integer(f, &amount, 1, AMOUNT_MOST, &ret->amount_micros);
    ret->reference = field_copy(f, &charge_reference);
    ret->started_at = field_copy(f, &started_at);
    ret->occurred_at = field_copy(f, &occurred_at);
}

static bool is_reason(struct str s)
{
    return str_trim(s).len > 0;
}

void adjust_read(struct fields *f, struct adjust_request *ret)
{
    ret->amount_micros = 0;
    if (field_integer(f, &adjustment_amount, -AMOUNT_MOST, AMOUNT_MOST, &ret->amount_micros) && ret->amount_micros == 0)
        fields_fail(f, &adjustment_amount, "must not be 0");
    ret->reference = field_copy(f, &charge_reference);
    ret->reason = field_copy(f, &adjustment_reason);
}

/* Seconds, 0 for what is no period. */
static int64_t period_of(struct str s)
{
    int64_t ms;
    bool whole = str_to_duration_ms(s, &ms) == OK && ms % 1000 == 0 && ms / 1000 <= PERIOD_MOST_S;
    return whole ? ms / 1000 : 0;
}

/* 0 for what is no period of the calendar. */
static int64_t months_of(struct str s)
{
    return str_eq(s, STR("month")) ? 1 : str_eq(s, STR("year")) ? 12 : 0;
}

static bool is_period(struct str s)
{
    return months_of(s) > 0 || period_of(s) > 0;
}

static void read_period(struct fields *f, struct subscribe_request *ret)
{
    struct str said = field_text(f, &period);
    ret->period_seconds = ret->period_months = 0;
    bool in_seconds = field_integer(f, &period_seconds, 1, PERIOD_MOST_S, &ret->period_seconds);
    if (in_seconds == (said.at != NULL))
        fields_fail(f, &period, "or period_seconds must be there, and not both");
    else if (!in_seconds && (ret->period_months = months_of(said)) == 0)
        ret->period_seconds = period_of(said);
}

void subscribe_read(struct fields *f, struct subscribe_request *ret)
{
    read_account(f, ret->account_id);
    (void)field_integer(f, &amount, 1, AMOUNT_MOST, &ret->amount_micros);
    read_period(f, ret);
    ret->reference = field_copy(f, &subscription_reference);
    ret->first_charge_at = field_copy(f, &first_charge_at);
}
