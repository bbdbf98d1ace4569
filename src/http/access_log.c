#include "http/access_log.h"

#include <string.h>

#include "base/clock.h"

/* Long enough for every line: routes, methods and outcomes are short constants. */
#define TEXT_MAX 200

static char *add(char *to, const char *text)
{
    size_t len = strnlen(text, TEXT_MAX);
    memcpy(to, text, len);
    return to + len;
}

static char *add_text(char *to, const char *key, const char *value)
{
    to = add(to, key); /* with the quotes, and those that open the value */
    to = add(to, value);
    *to++ = '"';
    return to;
}

static char *add_number(char *to, uint64_t n)
{
    char digits[20];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + n % 10);
    while (n /= 10);
    memcpy(to, digits + at, sizeof digits - at);
    return to + sizeof digits - at;
}

/* Milliseconds with two digits behind the point. */
static char *add_ms(char *to, const char *key, int64_t ns)
{
    uint64_t hundredths = (uint64_t)ns / (10 * NS_PER_US);
    to = add_number(add(to, key), hundredths / 100);
    *to++ = '.';
    *to++ = (char)('0' + hundredths / 10 % 10);
    *to++ = (char)('0' + hundredths % 10);
    return to;
}

/* Formats each millisecond once. */
static const char *time_text(void)
{
    static _Thread_local int64_t formatted_ms = -1;
    static _Thread_local char text[25];
    int64_t us = clock_wall_us();
    if (us / 1000 != formatted_ms) {
        formatted_ms = us / 1000;
        clock_format_ms(us, text);
    }
    return text;
}

void access_log_add(struct log_batch *batch, const struct access *access)
{
    char *line = log_batch_line(batch), *to = line;
    if (!line)
        return;
    to = add_text(to, "{\"time\":\"", time_text());
    to = add_text(to, ",\"level\":\"info\",\"event\":\"request\",\"correlation_id\":\"", access->correlation_id);
    to = add_text(to, ",\"route\":\"", access->route);
    to = add_text(to, ",\"method\":\"", access->method);
    if (access->status)
        to = add_number(add(to, ",\"status\":"), (uint64_t)access->status);
    if (access->outcome)
        to = add_text(to, ",\"outcome\":\"", access->outcome);
    if (access->ns >= 0)
        to = add_ms(to, ",\"ms\":", access->ns);
    if (access->work_ns >= 0)
        to = add_ms(to, ",\"work_ms\":", access->work_ns);
    to = add(to, "}\n");
    log_batch_add(batch, (size_t)(to - line));
}
