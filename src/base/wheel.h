/* A timer wheel: adding, cancelling and expiring take constant time. Used by one thread.
 * Entries are embedded in the caller's structs; the wheel does not own them. */
#ifndef BASE_WHEEL_H
#define BASE_WHEEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/defs.h"

struct wheel_entry {
    struct wheel_entry *next, *previous; /* NULL when on no wheel, which callers initialise them to */
    int64_t due_ns;
};

#define WHEEL_SLOTS 1024

struct wheel {
    struct wheel_entry slots[WHEEL_SLOTS]; /* list heads */
    struct wheel_entry due;                /* expired, not yet returned */
    uint64_t taken[WHEEL_SLOTS / 64];      /* one bit per slot, set when it is not empty */
    int64_t tick_ns, turned_to;            /* slots up to this tick are empty */
    size_t count;
};

void wheel_init(struct wheel *w, int64_t tick_ns, int64_t now_ns);
/* An entry expires at the first tick at or after due_ns, never before. An entry already on this wheel is moved. */
void wheel_add(struct wheel *w, struct wheel_entry *entry, int64_t due_ns);
void wheel_cancel(struct wheel *w, struct wheel_entry *entry); /* does nothing when on no wheel */
bool wheel_holds(const struct wheel_entry *entry);
/* Removes and returns the next entry due by now_ns; NULL when there is none. now_ns may jump in either direction. */
struct wheel_entry *wheel_expire(struct wheel *w, int64_t now_ns);
/* When to call wheel_expire next: at most one turn ahead; INT64_MAX when the wheel is empty. */
int64_t wheel_next_ns(const struct wheel *w);

#endif
