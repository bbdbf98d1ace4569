/* Erases deleted customers from the participating tables, a page at a time, many customers at once, until nothing is left, and looks
 * again later. A shift of the leader (work/shift.h). */
#ifndef ERASURE_ERASER_H
#define ERASURE_ERASER_H

#include "work/shift.h"

struct eraser {
    _Atomic int64_t deadline_ms; /* an erasure unfinished for longer is logged as overdue */
    /* Used by eraser_run(): */
    int64_t census_ns, rescan_ns;
    bool alarmed;
};

/* shift_config.run; `eraser` is a struct eraser. */
enum err eraser_run(void *eraser, struct pg *pg, struct shift *shift);

/* Counts in the metrics what a participant has erased, and receipts that it finished or failed to. */
void eraser_count(const char *participant, int64_t erased, int64_t finished, int64_t failed);

extern const struct statement eraser_due, eraser_page, eraser_put_off, eraser_census, eraser_rescan;

#endif
