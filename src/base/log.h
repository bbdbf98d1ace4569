/* Writes one JSON object per line to stderr: time, level, event, the correlation id of the request or job, fields.
 *   log_info("listening", F_STR("address", a), F_INT("loops", n));
 * Never an e-mail address, an IP, a code, a token or a request's body: log a hash or nothing. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

struct log_field {
    const char *name;
    enum { FIELD_STR, FIELD_INT, FIELD_REAL } kind;
    struct str s;
    int64_t n;
    double r;
};

#define F_STR(name, z) ((struct log_field){name, FIELD_STR, str_of(z), 0, 0})
#define F_BYTES(name, bytes) ((struct log_field){name, FIELD_STR, bytes, 0, 0})
#define F_INT(name, value) ((struct log_field){name, FIELD_INT, {NULL, 0}, value, 0})
#define F_REAL(name, value) ((struct log_field){name, FIELD_REAL, {NULL, 0}, 0, value})

void log_write(enum log_level level, const char *event, const struct log_field *fields, size_t count);

#define LOG_AT(level, event, ...)                                                                                      \
    log_write(level, event, (const struct log_field[]){{0}, ##__VA_ARGS__} + 1,                                        \
              sizeof((const struct log_field[]){{0}, ##__VA_ARGS__}) / sizeof(struct log_field) - 1)
#define log_debug(...) LOG_AT(LOG_DEBUG, __VA_ARGS__)
#define log_info(...) LOG_AT(LOG_INFO, __VA_ARGS__)
#define log_warn(...) LOG_AT(LOG_WARN, __VA_ARGS__)
#define log_error(...) LOG_AT(LOG_ERROR, __VA_ARGS__)

/* Lines of one thread that must not wait for a slow reader of the log: they are collected, then written several at a time.
 * What the reader has not taken stays for the next turn, up to LOG_BATCH_SIZE bytes; lines beyond that are dropped and
 * counted. */
#define LOG_BATCH_SIZE ((size_t)256 * 1024)
#define LOG_LINE_MAX 4096
struct log_batch {
    char *bytes; /* allocated with the first line */
    size_t begin, end;
};
/* Where the next line goes, at most LOG_LINE_MAX bytes; NULL when it must not be written: info is below the threshold, or
 * there is no room. */
char *log_batch_line(struct log_batch *batch);
void log_batch_add(struct log_batch *batch,
                   size_t len); /* the line written there, a whole JSON object and its newline */
/* Writes as much as does not have to wait. False when lines are left. */
bool log_batch_write(struct log_batch *batch);
void log_batch_free(struct log_batch *batch); /* writes what is left, unless it would have to wait */

/* Lines below this level are dropped. */
void log_threshold(enum log_level level);
/* Sets the correlation id of this thread's lines until the next call; NULL for none. The bytes must stay valid. */
void log_correlate(const char *correlation_id);
/* Where lines go instead of stderr; for tests. */
void log_to_fd(int fd);

#endif
