/* Reads a journal as a whole and checks it: signatures, that each line follows one that is there, and that it is this
 * installation's. */
#ifndef PROOF_READ_JOURNAL_H
#define PROOF_READ_JOURNAL_H

#include "proof/journal_line.h"

struct journal_reading {
    const struct proof_keys *keys;
    const char *installation; /* NULL: that of the first line */
    /* Called for each line in order; NULL: none. It may be called before a later line proves to be damaged: act when
     * journal_read() has returned OK. */
    enum err (*each)(void *context, const struct journal_line *line, struct str text);
    void *context;
    /* The result: */
    int64_t lines, of_kind[JOURNAL_KINDS], epoch; /* epoch: the greatest */
    int generation;                               /* the greatest, of the keys that sign the ends of chains */
};

/* ERR_INPUT: damaged, or of another installation; ERR_FULL: of a newer release; `why` says which line. */
enum err journal_read(const char *folder, struct journal_reading *r, struct why *why) MUST_CHECK;

#endif
