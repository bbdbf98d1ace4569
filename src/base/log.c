#include "base/log.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/metrics.h"

/* Writes of up to this size to a pipe are atomic, so lines of several threads and programs never mix. */
#define LINE_SIZE PIPE_BUF
_Static_assert(LOG_LINE_MAX <= PIPE_BUF, "a line is written as a whole");
#define VALUE_MOST 1024

METRIC_COUNTER(dropped, "reclaim_log_lines_dropped_total",
               "Lines about requests that were not logged because the log was not read fast enough.");

static _Atomic int threshold = LOG_INFO;
static _Atomic int to_fd = STDERR_FILENO;
static _Thread_local const char *correlation;

void log_threshold(enum log_level level)
{
    atomic_store(&threshold, (int)level);
}

void log_correlate(const char *correlation_id)
{
    correlation = correlation_id;
}

void log_to_fd(int fd)
{
    atomic_store(&to_fd, fd);
}

static const char *level_name(enum log_level level)
{
    switch (level) {
    case LOG_DEBUG:
        return "debug";
    case LOG_INFO:
        return "info";
    case LOG_WARN:
        return "warn";
    case LOG_ERROR:
        return "error";
    }
    return "unknown";
}

static void add_value(struct json_writer *w, const struct log_field *field)
{
    size_t left = w->out->ceiling - w->out->len;
    switch (field->kind) {
    case FIELD_STR:
        /* 5 bytes for the quotes and "…". */
        json_str_cut(w, field->s, left < VALUE_MOST + 5 ? (left > 5 ? left - 5 : 0) : VALUE_MOST);
        break;
    case FIELD_INT:
        json_i64(w, field->n);
        break;
    case FIELD_REAL:
        json_double(w, field->r);
        break;
    }
}

/* Adds the field, its value cut if too long, or leaves it out if not even its name fits. */
static void add_field(struct json_writer *w, const struct log_field *field)
{
    const struct json_writer before = *w;
    size_t len = w->out->len;
    json_key(w, field->name);
    if (!w->out->failed)
        add_value(w, field);
    if (w->out->failed) {
        w->out->failed = OK;
        w->out->len = len;
        *w = before;
    }
}

static void add_line(struct buf *line, enum log_level level, const char *event, const struct log_field *fields,
                     size_t count)
{
    static const struct str end = {"}\n", 2};
    char time[25];
    clock_format_ms(clock_wall_us(), time);

    line->ceiling -= end.len;
    struct json_writer w = json_to(line);
    json_open(&w, '{');
    add_field(&w, &F_STR("time", time));
    add_field(&w, &F_STR("level", level_name(level)));
    add_field(&w, &F_STR("event", event));
    if (correlation)
        add_field(&w, &F_STR("correlation_id", correlation));
    for (size_t i = 0; i < count; i++)
        add_field(&w, &fields[i]);
    line->ceiling += end.len;
    buf_add(line, end);
}

void log_write(enum log_level level, const char *event, const struct log_field *fields, size_t count)
{
    if ((int)level < atomic_load(&threshold))
        return;

    int saved = errno;
    char bytes[LINE_SIZE + 1];
    struct buf line = buf_over(bytes, sizeof bytes);
    add_line(&line, level, event, fields, count);
    /* A failed or partial write is ignored: there is no other place to report it. */
    while (write(atomic_load(&to_fd), line.at, line.len) < 0 && errno == EINTR)
        ;
    errno = saved;
}

char *log_batch_line(struct log_batch *batch)
{
    if (LOG_INFO < atomic_load(&threshold))
        return NULL;
    if (!batch->bytes)
        batch->bytes = malloc(LOG_BATCH_SIZE);
    if (batch->bytes && batch->begin && LOG_BATCH_SIZE - batch->end < LOG_LINE_MAX) {
        memmove(batch->bytes, batch->bytes + batch->begin, batch->end - batch->begin);
        batch->end -= batch->begin;
        batch->begin = 0;
    }
    if (batch->bytes && LOG_BATCH_SIZE - batch->end >= LOG_LINE_MAX)
        return batch->bytes + batch->end;
    counter_add(&dropped, 1);
    return NULL;
}

void log_batch_add(struct log_batch *batch, size_t len)
{
    batch->end += len;
}

/* Whole lines, as many as one write() leaves together. */
static size_t portion_of(const struct log_batch *batch)
{
    const char *from = batch->bytes + batch->begin;
    size_t len = batch->end - batch->begin;
    if (len <= LINE_SIZE)
        return len;
    return (size_t)((const char *)memrchr(from, '\n', LINE_SIZE) + 1 - from);
}

bool log_batch_write(struct log_batch *batch)
{
    while (batch->begin < batch->end) {
        struct pollfd out = {atomic_load(&to_fd), POLLOUT, 0};
        if (poll(&out, 1, 0) == 0)
            return false;
        size_t len = portion_of(batch);
        while (write(out.fd, batch->bytes + batch->begin, len) < 0 && errno == EINTR)
            ;
        batch->begin += len;
    }
    batch->begin = batch->end = 0;
    return true;
}

void log_batch_free(struct log_batch *batch)
{
    (void)log_batch_write(batch);
    free(batch->bytes);
    *batch = (struct log_batch){NULL, 0, 0};
}
