/* Time, which tests can shift. Nothing else in the program reads a clock. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define NS_PER_US INT64_C(1000)
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)

int64_t clock_ns(void);      /* monotonic: for deadlines and durations */
int64_t clock_wall_us(void); /* microseconds since 1970, UTC: for people */

/* Moves both clocks by this much from now on, on every thread. Only tests call it. */
void clock_shift(int64_t by_ns);

/* The installation's time, reclaim.now(), which is ahead of the wall clock while a sandbox has moved it: for dates of
 * customers and codes. Noted by who reads the database's changes, every 50 ms; before that, the wall clock. */
int64_t clock_installation_us(void);
bool clock_is_sandbox(void);          /* it can be moved */
int64_t clock_sandbox_shift_ms(void); /* by which it is ahead; 0: not moved, or no sandbox */
void clock_note_sandbox(bool is_sandbox, int64_t shift_us);

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
