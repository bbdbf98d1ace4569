/* Whether the database was restored from a backup and erasures are still to be replayed (`reclaim replay-erasures`). Until then nothing
 * is mailed, charged, deleted or published. Noted at start and by whoever reads the database's changes, every 50 ms. */
#ifndef BASE_RESTORED_H
#define BASE_RESTORED_H

#include <stdbool.h>

bool restored_is_known(void);
void restored_note(bool restored); /* logs each change */

/* After the connection to the database was lost, it may be a restored one until the journal has been compared with it: background
 * work waits for that. */
bool restored_may_be(void); /* known, or in doubt */
void restored_doubt(void);
unsigned restored_doubts(void);          /* how often there was doubt */
void restored_compared(unsigned doubts); /* as it was before the comparison: doubt since then stays */
int restored_doubt_fd(void);             /* readable while in doubt; -1: no descriptor */

#endif
