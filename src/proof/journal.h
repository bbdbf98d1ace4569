/* The journal: a folder outside the database that lists who was erased and the heads of the sealed log (journal_line.h). Files are
 * only appended to, each up to JOURNAL_FILE_MAX bytes, and named by their numbers: 00000001.jsonl. A restored database lacks
 * lines that are here.
 *
 * Several processes may share a folder: changes are made between journal_lock() and journal_unlock(). */
#ifndef PROOF_JOURNAL_H
#define PROOF_JOURNAL_H

#include "base/digest.h"
#include "base/str.h"

#define JOURNAL_FILE_MAX ((int64_t)4 * 1024 * 1024)
#define JOURNAL_FILE_S (INT64_C(24) * 3600) /* then the next one begins, so that old ones can be removed */

struct journal;

/* Makes the folder when it is missing, for its owner alone. */
enum err journal_open(const char *folder, struct journal **ret, struct why *why) MUST_CHECK;
void journal_close(struct journal *j); /* NULL is fine */
const char *journal_folder(const struct journal *j);

/* Waits for other processes and threads. Cuts off a line that a crash left without its end, and reads the last one. */
enum err journal_lock(struct journal *j, struct why *why) MUST_CHECK;
void journal_unlock(struct journal *j);
/* While it is locked: */
bool journal_tail(const struct journal *j, struct digest *ret); /* the hash of the last line; false: there is none */
/* Until it returns OK, lines that were found may be in memory alone: their writer was killed before they were on the disk. */
enum err journal_sync(struct journal *j, struct why *why) MUST_CHECK;
/* Lines with their ends ("\n"). They are on the disk when it returns OK. */
enum err journal_append(struct journal *j, struct str lines, struct why *why) MUST_CHECK;
/* Removes files, except the last, that were last written to before this time. */
enum err journal_prune(struct journal *j, int64_t before_s, int64_t *ret_removed) MUST_CHECK;

/* The hash of the last line that has its end, without a lock. ERR_MISSING: there is no such folder, or no line in it. */
enum err journal_last(const char *folder, struct digest *ret, struct why *why) MUST_CHECK;

/* A line and where it is. */
struct journal_place {
    const char *file; /* its name in the folder */
    int64_t number;   /* of the line in the file; 1 is the first */
    bool first_file;  /* of those that are left */
};
/* `folder` may also be one file, as `reclaim journal export` writes it. Calls `each` with every line that has its end, in order, until it fails. Needs no lock: a line that is being written has no end
 * yet. ERR_MISSING: there is no such folder. */
enum err journal_each(const char *folder,
                      enum err (*each)(void *context, const struct journal_place *, struct str line), void *context,
                      struct why *why) MUST_CHECK;

#endif
