/* The database's lines of the journal, reclaim.journal_lines: whether each is one that Reclaim wrote, and taking those that the database
 * lacks. */
#ifndef ERASURE_JOURNAL_LINES_H
#define ERASURE_JOURNAL_LINES_H

#include "pg/pg.h"
#include "proof/journal_line.h"

/* Whether a row of reclaim.journal_lines is a line that this installation signed, with its hash. */
enum err journal_row_check(const struct proof_keys *keys, int64_t id, struct str text, struct str hash,
                           struct why *why) MUST_CHECK;
/* The same of many, with columns id, line and hash. */
enum err journal_rows_check(const struct proof_keys *keys, const struct pg_call *rows, struct why *why) MUST_CHECK;

/* The name of this installation, as in lines. */
enum err journal_installation_name(struct pg *pg, const struct proof_keys *keys, int64_t deadline_ns,
                                   char ret[INSTALLATION_ID_LEN + 1]) MUST_CHECK;

/* Deletes lines from the database that are older than the backups. */
enum err journal_lines_prune(struct pg *pg, int64_t retention_ms, int64_t deadline_ns) MUST_CHECK;

/* Takes lines that the database lacks, a page at a time. */
struct lost_lines {
    struct buf hashes, lines;
    int count;
    int64_t taken;
};
enum err lost_lines_add(struct lost_lines *lost, struct pg *pg, int64_t deadline_ns, const struct digest *hash,
                        struct str line) MUST_CHECK;
enum err lost_lines_flush(struct lost_lines *lost, struct pg *pg, int64_t deadline_ns) MUST_CHECK;
void lost_lines_cleanup(struct lost_lines *lost);
struct lost_lines lost_lines_new(void);

extern const struct statement *const journal_lines_statements[];
extern const size_t journal_lines_statement_count;

#endif
