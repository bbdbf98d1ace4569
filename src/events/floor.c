#include "events/floor.h"

/* Events between the last one read and the checkpoint have not been read yet. */
static int64_t settled_by(const struct outbox_floor *f, const struct outbox_reading *r)
{
    return r->more && r->last < f->checkpoint ? r->last : f->checkpoint;
}

void floor_move(struct outbox_floor *f, const struct outbox_reading *r)
{
    if (f->until_xid && r->oldest_xid >= f->until_xid) {
        int64_t settled = settled_by(f, r);
        if (settled > f->at)
            f->at = settled;
        f->until_xid = 0;
    }
    if (!f->until_xid) {
        f->checkpoint = f->read;
        f->until_xid = r->next_xid;
    }
    if (r->last > f->read)
        f->read = r->last;
}
