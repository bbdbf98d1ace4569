/* Keeps an instance's journal (proof/journal.h) and the database's lines the same.
 *
 * A line is committed in the database before it is written to any journal. So a line that a journal has and the database has not
 * means that the database was restored from a backup: the line goes into the database as lost (reclaim.journal_lose), and every
 * instance stops mailing, charging and deleting until `reclaim replay-erasures`. Lines that the journal lacks are appended. */
#ifndef ERASURE_JOURNAL_KEEPER_H
#define ERASURE_JOURNAL_KEEPER_H

#include "erasure/journal_lines.h"

struct journal;

struct keeper {
    struct journal *journal;
    const struct proof_keys *keys;
    _Atomic int64_t retention_ms; /* of backups: older lines are removed, and missed by nobody */
    bool had_lines;               /* while the journal is locked: it was not always empty */
};

/* At start: every line is compared. `ret_lost`: of the journal, that the database lacked. ERR_INPUT and ERR_FULL: the journal is damaged,
 * another installation's, or a newer release's. */
enum err keeper_compare(struct keeper *k, struct pg *pg, int64_t deadline_ns, int64_t *ret_lost,
                        struct why *why) MUST_CHECK;
/* For a folder, or a file, that is only read, as a whole. */
enum err journal_import(const char *folder, const struct proof_keys *keys, int64_t retention_ms, struct pg *pg,
                        int64_t deadline_ns, int64_t *ret_lost, struct why *why) MUST_CHECK;
/* Whether the database lacks the last line of the journal in a folder, which need not exist. */
enum err journal_is_ahead(const char *folder, struct pg *pg, int64_t deadline_ns, bool *ret,
                          struct why *why) MUST_CHECK;
/* Afterwards: looks whether the journal's last line is in the database, and appends those behind it, which are on the disk when
 * it returns OK. `ret_last`: the id of the last one. */
enum err keeper_sync(struct keeper *k, struct pg *pg, int64_t deadline_ns, int64_t *ret_last,
                     struct why *why) MUST_CHECK;

/* The thread that does so every minute, over a connection of its own for as long. */
struct keeper_thread;
struct keeper_thread *keeper_start(struct keeper *k, const char *direct_url, struct why *why) MUST_CHECK;
void keeper_stop(struct keeper_thread *thread); /* NULL is fine */

/* For reclaim_journal_failing, until keeper_sync() succeeds again. */
void keeper_note_failure(void);
extern const struct statement *const keeper_statements[];
extern const size_t keeper_statement_count;

#endif
