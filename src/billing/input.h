/* The bodies of requests to billing, read strictly. */
#ifndef BILLING_INPUT_H
#define BILLING_INPUT_H

#include "api/fields.h"

/* Larger JSON numbers are rounded by programs that read them as doubles. */
#define AMOUNT_MOST INT64_C(9007199254740992)
#define REFERENCE_BYTES_MOST 255
#define ADJUSTMENT_REASON_MAX 1000

struct charge_request {
    char account_id[37];
    int64_t amount_micros;
    const char *reference;
    const char *started_at;  /* NULL: the usage has no length */
    const char *occurred_at; /* NULL: now */
};

struct adjust_request {
    int64_t amount_micros; /* positive or negative */
    const char *reference, *reason;
};

struct subscribe_request {
    char account_id[37];
    int64_t amount_micros;
    int64_t period_seconds;      /* 0: a period of the calendar, */
    int64_t period_months;       /* which has so many months */
    const char *first_charge_at; /* NULL: now */
    const char *reference;       /* NULL: none */
};

/* The body's fields, for the readers below; what is wrong is in `f` then. Texts are of the arena. */
struct fields billing_fields(struct arena *arena, struct str body);
void charge_read(struct fields *f, struct charge_request *ret);
void subscribe_read(struct fields *f, struct subscribe_request *ret);
void adjust_read(struct fields *f, struct adjust_request *ret);

/* "2026-03-18T12:00:00.123456Z", or with "+01:00": RFC 3339, with a day that exists, from 1970 on. */
bool time_is_rfc3339(struct str s);

#endif
