/* After a reload: records in the database what its triggers need of the settings. */
#ifndef SERVER_NOTE_SETTINGS_H
#define SERVER_NOTE_SETTINGS_H

#include "pg/pool.h"

/* As a job of the pool; a failure is logged. */
void note_settings_soon(struct pool *pool, int64_t grace_ms, bool mails, int64_t freeze_limit, int64_t cooldown_ms);

#endif
