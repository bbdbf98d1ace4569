/* A set of digests that grows: which lines a journal has. */
#ifndef PROOF_DIGEST_SET_H
#define PROOF_DIGEST_SET_H

#include "base/digest.h"

struct digest_set {
    struct digest *slots; /* all zero: free */
    size_t count, room;
};

enum err digest_set_add(struct digest_set *set, const struct digest *d) MUST_CHECK;
bool digest_set_has(const struct digest_set *set, const struct digest *d);
void digest_set_cleanup(struct digest_set *set); /* for AUTO(digest_set) */

#endif
