#include "base/wheel.h"

static int64_t floor_tick(const struct wheel *w, int64_t ns)
{
    return ns / w->tick_ns - (ns % w->tick_ns < 0);
}

static int64_t due_tick(const struct wheel *w, const struct wheel_entry *entry)
{
    return entry->due_ns / w->tick_ns + (entry->due_ns % w->tick_ns > 0);
}

static size_t slot_of(uint64_t tick)
{
    return (size_t)(tick % WHEEL_SLOTS);
}

static void list_init(struct wheel_entry *head)
{
    head->next = head->previous = head;
}

static bool list_empty(const struct wheel_entry *head)
{
    return head->next == head;
}

void wheel_init(struct wheel *w, int64_t tick_ns, int64_t now_ns)
{
    *w = (struct wheel){.tick_ns = tick_ns};
    for (size_t i = 0; i < WHEEL_SLOTS; i++)
        list_init(&w->slots[i]);
    list_init(&w->due);
    w->turned_to = floor_tick(w, now_ns);
}

/* Links the entry into the slot of its tick, or into the due list when that tick has passed. */
static void put(struct wheel *w, struct wheel_entry *entry)
{
    int64_t tick = due_tick(w, entry);
    struct wheel_entry *head = &w->due;
    if (tick > w->turned_to) {
        size_t slot = slot_of((uint64_t)tick);
        head = &w->slots[slot];
        w->taken[slot / 64] |= UINT64_C(1) << slot % 64;
    }
    entry->next = head;
    entry->previous = head->previous;
    entry->previous->next = entry;
    head->previous = entry;
}

static void take(struct wheel *w, struct wheel_entry *entry)
{
    struct wheel_entry *head =
        entry->next; /* the list head if this was the only entry; otherwise list_empty() is false below */
    entry->next->previous = entry->previous;
    entry->previous->next = entry->next;
    entry->next = entry->previous = NULL;
    if (list_empty(head) && head != &w->due) {
        size_t slot = (size_t)(head - w->slots);
        w->taken[slot / 64] &= ~(UINT64_C(1) << slot % 64);
    }
}

void wheel_add(struct wheel *w, struct wheel_entry *entry, int64_t due_ns)
{
    wheel_cancel(w, entry);
    entry->due_ns = due_ns;
    put(w, entry);
    w->count++;
}

void wheel_cancel(struct wheel *w, struct wheel_entry *entry)
{
    if (!wheel_holds(entry))
        return;
    take(w, entry);
    w->count--;
}

bool wheel_holds(const struct wheel_entry *entry)
{
    return entry->next != NULL;
}

/* Moves every entry of the list to the list where it belongs now. Entries that stay are appended to the same list, so
 * the loop ends at the entry that was last. */
static void redistribute(struct wheel *w, struct wheel_entry *head)
{
    if (list_empty(head))
        return;
    struct wheel_entry *last = head->previous;
    for (struct wheel_entry *entry = head->next, *next;; entry = next) {
        next = entry->next;
        bool ended = entry == last;
        take(w, entry);
        put(w, entry);
        if (ended)
            return;
    }
}

/* Makes the due list hold exactly the entries due by now_ns, also when the clock went back. */
static void advance(struct wheel *w, int64_t now_ns)
{
    int64_t from = w->turned_to, to = floor_tick(w, now_ns);
    if (to == from)
        return;
    w->turned_to = to;
    if (to < from) {
        redistribute(w, &w->due);
        return;
    }
    uint64_t ticks = (uint64_t)to - (uint64_t)from;
    if (ticks > WHEEL_SLOTS)
        ticks = WHEEL_SLOTS;
    for (uint64_t i = 1; i <= ticks; i++)
        redistribute(w, &w->slots[slot_of((uint64_t)from + i)]);
}

struct wheel_entry *wheel_expire(struct wheel *w, int64_t now_ns)
{
    advance(w, now_ns);
    if (list_empty(&w->due))
        return NULL;
    struct wheel_entry *entry = w->due.next;
    wheel_cancel(w, entry);
    return entry;
}

/* Ticks from turned_to to the next slot that is not empty, 1 to WHEEL_SLOTS; there must be one. */
static int64_t ticks_to_next(const struct wheel *w)
{
    for (size_t ahead = 1;;) {
        size_t slot = slot_of((uint64_t)w->turned_to + ahead);
        uint64_t word = w->taken[slot / 64] >> slot % 64;
        if (word)
            return (int64_t)ahead + __builtin_ctzll(word);
        ahead += 64 - slot % 64;
    }
}

int64_t wheel_next_ns(const struct wheel *w)
{
    if (w->count == 0)
        return INT64_MAX;
    if (!list_empty(&w->due))
        return w->due.next->due_ns;

    int64_t ns;
    if (__builtin_add_overflow(w->turned_to, ticks_to_next(w), &ns) || __builtin_mul_overflow(ns, w->tick_ns, &ns))
        return INT64_MAX;
    return ns;
}
