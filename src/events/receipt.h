/* What a remote service says about its part of a cascade. */
#ifndef EVENTS_RECEIPT_H
#define EVENTS_RECEIPT_H

#include <stdint.h>

#include "base/str.h"

#define RECEIPT_BYTES_MAX ((size_t)64 * 1024)
#define RECEIPT_ERROR_MAX 500

struct receipt {
    char customer_id[37];
    char participant[101];
    bool done;                         /* else it failed */
    int64_t rows;                      /* -1: not said */
    char error[RECEIPT_ERROR_MAX + 4]; /* cut; "" for none */
};

/* {"customer_id":UUID,"participant":NAME,"status":"done"|"failed","rows":n?,"error":text?}; other members are ignored.
 * ERR_INPUT, and `why` says what is wrong without quoting the message. */
enum err receipt_parse(struct str text, struct receipt *ret, struct why *why) MUST_CHECK;

#endif
