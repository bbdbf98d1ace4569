#include "base/clock.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* One number for both clocks, so that they always shift together. */
static _Atomic int64_t shift_ns;

static int64_t read_ns(clockid_t clock)
{
    struct timespec t;
    if (clock_gettime(clock, &t) != 0)
        abort(); /* only a wrong clock id can fail */
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

int64_t clock_ns(void)
{
    return read_ns(CLOCK_MONOTONIC) + atomic_load(&shift_ns);
}

int64_t clock_wall_us(void)
{
    return (read_ns(CLOCK_REALTIME) + atomic_load(&shift_ns)) / NS_PER_US;
}

void clock_shift(int64_t by_ns)
{
    atomic_fetch_add(&shift_ns, by_ns);
}

/* Of the sandbox; the database has the same. */
static _Atomic int64_t sandbox_shift_us;
static atomic_bool sandbox;

int64_t clock_installation_us(void)
{
    return clock_wall_us() + atomic_load(&sandbox_shift_us);
}

bool clock_is_sandbox(void)
{
    return atomic_load(&sandbox);
}

int64_t clock_sandbox_shift_ms(void)
{
    return atomic_load(&sandbox_shift_us) / 1000;
}

void clock_note_sandbox(bool is_sandbox, int64_t shift_us)
{
    atomic_store(&sandbox, is_sandbox);
    atomic_store(&sandbox_shift_us, shift_us);
}

struct timespec clock_unshifted(int64_t at_ns)
{
    int64_t ns;
    if (__builtin_sub_overflow(at_ns, atomic_load(&shift_ns), &ns))
        ns = at_ns < 0 ? 0 : INT64_MAX;
    if (ns < 0)
        ns = 0;
    return (struct timespec){.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
}

int clock_ms_until(int64_t deadline_ns, int most)
{
    int64_t left;
    if (__builtin_sub_overflow(deadline_ns, clock_ns(), &left))
        return deadline_ns < 0 ? 0 : most;
    if (left <= 0)
        return 0;
    int64_t ms = left / NS_PER_MS + (left % NS_PER_MS > 0);
    return ms < most ? (int)ms : most;
}

/* "2026-03-18T12:00:00" and a NUL; returns the microseconds. */
static unsigned format_seconds(int64_t wall_us, char into[20])
{
    /* Years 0000 to 9999: beyond them the text would be longer. */
    const int64_t first_us = INT64_C(-62167219200000000), last_us = INT64_C(253402300799999999);
    if (wall_us < first_us)
        wall_us = first_us;
    if (wall_us > last_us)
        wall_us = last_us;

    int64_t us = wall_us % 1000000;
    if (us < 0)
        us += 1000000;
    time_t seconds = (wall_us - us) / 1000000;
    struct tm t;
    if (!gmtime_r(&seconds, &t))
        abort(); /* only a year past INT_MAX can fail */
    /* The remainders let the compiler prove that the text fits. */
    (void)snprintf(into, 20, "%04u-%02u-%02uT%02u:%02u:%02u", (unsigned)(t.tm_year + 1900) % 10000,
                   (unsigned)(t.tm_mon + 1) % 100, (unsigned)t.tm_mday % 100, (unsigned)t.tm_hour % 100,
                   (unsigned)t.tm_min % 100, (unsigned)t.tm_sec % 100);
    return (unsigned)us;
}

void clock_format_ms(int64_t wall_us, char into[25])
{
    char seconds[20];
    unsigned us = format_seconds(wall_us, seconds);
    (void)snprintf(into, 25, "%s.%03uZ", seconds, us / 1000 % 1000);
}

void clock_format_us(int64_t wall_us, char into[28])
{
    char seconds[20];
    unsigned us = format_seconds(wall_us, seconds);
    (void)snprintf(into, 28, "%s.%06uZ", seconds, us % 1000000);
}
