/* Time, which tests can shift. Nothing else in the program reads a clock. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_US INT64_C(1000)
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)

int64_t clock_ns(void);      /* monotonic: for deadlines and durations */
int64_t clock_wall_us(void); /* microseconds since 1970, UTC: for people */

/* Moves both clocks by this much from now on, on every thread. Only tests call it. */
void clock_shift(int64_t by_ns);

/* The CLOCK_MONOTONIC time at which clock_ns() returns at_ns, for system calls that sleep until an absolute time.
 * A sleeping thread does not notice a later clock_shift(): wake up regularly to check. */
struct timespec clock_unshifted(int64_t at_ns);

/* Whole milliseconds from now to `deadline_ns`, rounded up, 0 when past, at most `most`: for poll(). */
int clock_ms_until(int64_t deadline_ns, int most);

/* "2026-03-18T12:00:00.123Z", always 24 bytes and a NUL. */
void clock_format_ms(int64_t wall_us, char into[25]);
/* "2026-03-18T12:00:00.123456Z", always 27 bytes and a NUL. */
void clock_format_us(int64_t wall_us, char into[28]);

#endif
