/* After a restore: erases again whom the journal's lost lines name (reclaim.journal_lose), then lets the instances go on. */
#ifndef ERASURE_REPLAY_H
#define ERASURE_REPLAY_H

#include "pg/pg.h"
#include "proof/proof_key.h"

struct replay {
    struct pg *pg;
    const struct proof_keys *keys;
    bool keeps_keys;                                           /* API keys are not ended */
    void (*progress)(void *context, int64_t done, int64_t of); /* after each batch; NULL: none */
    void *context;
    /* The result: */
    int64_t of, done, failed; /* lines: all, those that were replayed, and those that could not be */
    int64_t erased, absent;   /* customers that were there again, or not */
    int64_t codes, sessions, api_keys, mails, epoch, events;
    int64_t dates;            /* deletions of frozen customers that were moved */
    char failed_customer[37]; /* the first one */
    char sqlstate[6];
};

/* Whether there is anything to replay: a line that the database lacked. */
enum err replay_is_needed(struct pg *pg, int64_t deadline_ns, bool *ret) MUST_CHECK;
/* Can be repeated after a crash: each batch is a transaction of its own. When lines failed, the database stays as restored. */
enum err replay_erasures(struct replay *r, struct why *why) MUST_CHECK;

extern const struct statement *const replay_statements[];
extern const size_t replay_statement_count;

#endif
