/* What may be asked of billing, read strictly: money is not guessed at. */
#ifndef BILLING_INPUT_H
#define BILLING_INPUT_H

#include "base/arena.h"

/* JSON numbers beyond this are not the same in every program. */
#define AMOUNT_MOST INT64_C(9007199254740992)
#define REFERENCE_BYTES_MOST 255

/* Why it was not understood; both are constants. */
struct complaint {
    const char *code, *message;
};

struct charge_request {
    char account_id[37];
    int64_t amount_micros;
    const char *reference;
    const char *occurred_at; /* NULL: now */
};

struct subscribe_request {
    char account_id[37];
    int64_t amount_micros, period_seconds;
    const char *first_charge_at; /* NULL: now */
    const char *reference;       /* NULL: none */
};

/* ERR_INPUT with a complaint, or ERR_MEMORY. Texts are of the arena. */
enum err charge_read(struct arena *arena, struct str body, struct charge_request *ret,
                     struct complaint *complaint) MUST_CHECK;
enum err subscribe_read(struct arena *arena, struct str body, struct subscribe_request *ret,
                        struct complaint *complaint) MUST_CHECK;

/* "2026-03-18T12:00:00.123456Z", or with "+01:00": RFC 3339, with a day that exists, from 1970 on. */
bool time_is_rfc3339(struct str s);

#endif
