/* Parses the report of a participant about its part of an erasure, received over RabbitMQ or HTTP. */
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
    bool done;                         /* false: failed */
    int64_t rows;                      /* -1: not reported */
    char error[RECEIPT_ERROR_MAX + 4]; /* "" for none */
    bool error_is_cut;                 /* truncated to RECEIPT_ERROR_MAX */
};

/* {"customer_id":UUID,"participant":NAME,"status":"done"|"failed","rows":n?,"error":text?}; other members are ignored.
 * ERR_INPUT with the reason in `why`, which does not quote the message. */
enum err receipt_parse(struct str text, struct receipt *ret, struct why *why) MUST_CHECK;
/* Reads status, rows and error only; a missing status means done. */
enum err receipt_read_report(const json_t *body, struct receipt *ret, struct why *why) MUST_CHECK;

#endif
