/* Private to src/events: from which position the relay reads the outbox again.
 *
 * A position is drawn before its transaction commits, so an event may
 * appear below others that were published long before: what is above the floor is read again until no transaction that
 * could still commit below it is under way. */
#ifndef EVENTS_FLOOR_H
#define EVENTS_FLOOR_H

#include <stdbool.h>
#include <stdint.h>

struct outbox_floor {
    int64_t at;         /* every event up to here is published or will never be committed; 0: read from the start */
    int64_t read;       /* the highest position read so far */
    int64_t checkpoint; /* becomes the floor once every transaction before until_xid has ended */
    int64_t until_xid;  /* 0: no checkpoint is set */
};

/* One reading of the outbox. The transaction ids are of a snapshot taken before the events were read, so that events of
 * transactions which had ended in it were seen. */
struct outbox_reading {
    int64_t oldest_xid, next_xid; /* pg_snapshot_xmin and pg_snapshot_xmax */
    int64_t last;                 /* the highest position that was read; 0: none was */
    bool more;                    /* as many events were read as asked for: others may follow */
};

void floor_move(struct outbox_floor *floor, const struct outbox_reading *reading);

#endif
