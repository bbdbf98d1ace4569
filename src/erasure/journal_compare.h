/* Compares a journal with the database's lines, as a whole: lines that the database lacks go into it as lost, and
 * lines that the journal lacks are appended. */
#ifndef ERASURE_JOURNAL_COMPARE_H
#define ERASURE_JOURNAL_COMPARE_H

#include "erasure/journal_lines.h"
#include "proof/digest_set.h"

struct journal;

struct comparison {
    const struct proof_keys *keys;
    const char *folder;
    struct journal *journal; /* locked; what it lacks is appended; NULL: it is only read */
    struct pg *pg;
    int64_t deadline_ns;
    /* The result: */
    int64_t last;     /* the id of the database's last line */
    int64_t appended; /* to the journal */
    bool was_empty;   /* the journal, before */
    bool done;        /* what the database lacks is recorded, whatever became of what the journal lacks */
    bool unkept;      /* that failed: a row is no line of Reclaim's, or the journal cannot be written */
    struct lost_lines lost;
    /* Used by journal_compare(): */
    int64_t oldest_s;               /* what is older is missed by nobody */
    struct digest_set ours, theirs; /* of the journal, of the database */
    int64_t missing;                /* of the journal's lines, in the database */
    int64_t lacking;                /* of the database's lines, in the journal */
};

enum err journal_compare(struct comparison *c, int64_t retention_ms, struct why *why) MUST_CHECK;

extern const struct statement *const compare_statements[];
extern const size_t compare_statement_count;

#endif
