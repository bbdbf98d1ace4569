/* Private to src/http: the log line of a finished request. Nothing in it comes from the client but the correlation id, which
 * is a UUID. */
#ifndef HTTP_ACCESS_LOG_H
#define HTTP_ACCESS_LOG_H

#include "base/log.h"

struct access {
    const char *correlation_id;
    const char *route; /* the pattern, not the path */
    const char *method;
    const char *outcome; /* NULL: none */
    int status;          /* 0: not answered */
    int64_t ns;          /* from the last byte of the request to its answer; negative: none */
    int64_t work_ns;     /* the same without the hold; negative: none */
};

/* Used for every request at the gate: it costs a fraction of log_info(). */
void access_log_add(struct log_batch *batch, const struct access *access);

#endif
