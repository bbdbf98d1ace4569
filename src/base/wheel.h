/* A timer wheel: adding, cancelling and expiring cost the same whatever is on it. Belongs to one thread.
 * Entries are members of what waits; the wheel owns none of them. */
#ifndef BASE_WHEEL_H
#define BASE_WHEEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/defs.h"

struct wheel_entry {
    struct wheel_entry *next, *previous; /* NULL when on no wheel; so must they begin */
    int64_t due_ns;
};

#define WHEEL_SLOTS 1024

struct wheel {
    struct wheel_entry slots[WHEEL_SLOTS]; /* list heads */
    struct wheel_entry due;                /* expired, not yet handed out */
    uint64_t taken[WHEEL_SLOTS / 64];      /* a bit for each slot that is not empty */
    int64_t tick_ns, turned_to;            /* slots up to this tick have been emptied */
    size_t count;
};

void wheel_init(struct wheel *w, int64_t tick_ns, int64_t now_ns);
/* Due entries come out at the first tick at or after due_ns, never before. An entry already on this wheel is moved. */
void wheel_add(struct wheel *w, struct wheel_entry *entry, int64_t due_ns);
void wheel_cancel(struct wheel *w, struct wheel_entry *entry); /* fine when on no wheel */
bool wheel_holds(const struct wheel_entry *entry);
/* The next entry that is due by now_ns, taken off the wheel; NULL when there is none. now_ns may jump either way. */
struct wheel_entry *wheel_expire(struct wheel *w, int64_t now_ns);
/* When to call wheel_expire next: at most one turn ahead; INT64_MAX when the wheel is empty. */
int64_t wheel_next_ns(const struct wheel *w);

#endif
