/* What a remote service reports about its part of an erasure, over RabbitMQ or over HTTP: one reader, one set of limits. */
#ifndef EVENTS_RECEIPT_H
#define EVENTS_RECEIPT_H

#include <stdint.h>

#include "base/json.h"

#define RECEIPT_BYTES_MAX ((size_t)64 * 1024)
#define RECEIPT_ERROR_MAX 200 /* bytes */
#define PARTICIPANT_NAME_MAX 63

struct receipt {
    char customer_id[37];
    char participant[PARTICIPANT_NAME_MAX + 1];
    bool done;                         /* else it failed */
    int64_t rows;                      /* -1: not reported */
    char error[RECEIPT_ERROR_MAX + 4]; /* "" for none */
    bool error_is_cut;                 /* it was longer than RECEIPT_ERROR_MAX */
};

/* {"customer_id":UUID,"participant":NAME,"status":"done"|"failed","rows":n?,"error":text?}; other members are ignored.
 * ERR_INPUT, and `why` says what is wrong without quoting the message. */
enum err receipt_parse(struct str text, struct receipt *ret, struct why *why) MUST_CHECK;
/* The last three of these members, where customer and participant are known. Without a status it is done. */
enum err receipt_read_report(const json_t *body, struct receipt *ret, struct why *why) MUST_CHECK;

#endif
