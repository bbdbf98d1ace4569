/* Private to src/events: the position from which the relay reads the outbox again.
 *
 * A position is assigned before its transaction commits, so an event may become visible below others that were
 * published before. Positions above the floor are read again until no running transaction can commit an event below
 * it. */
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

/* One read of the outbox. The transaction ids are of a snapshot taken before the read, so that events of
 * transactions that had ended in it were read. */
struct outbox_reading {
    int64_t oldest_xid, next_xid; /* pg_snapshot_xmin and pg_snapshot_xmax */
    int64_t last;                 /* the highest position that was read; 0: none was */
    bool more;                    /* the read returned as many events as requested: others may follow */
};

void floor_move(struct outbox_floor *floor, const struct outbox_reading *reading);

#endif
