/* Merkle trees as in RFC 9162, section 2.1: appending leaves, roots, and paths that prove a leaf's place in a tree. */
#ifndef PROOF_MERKLE_H
#define PROOF_MERKLE_H

#include "base/arena.h"
#include "base/digest.h"

#define MERKLE_LEVELS 63

struct digest merkle_leaf(struct str fact); /* SHA-256 of a zero byte and the fact */

/* What is needed of a tree to append to it: for each bit of its size the root of that complete subtree, by level. */
struct merkle_frontier {
    uint64_t size;
    struct digest peaks[MERKLE_LEVELS];
};

void merkle_append(struct merkle_frontier *f, const struct digest *leaves, size_t count);
struct digest merkle_root(const struct merkle_frontier *f); /* of the empty tree: SHA-256 of nothing */
/* The peaks as bytes, lowest level first, the size apart; `into` holds MERKLE_LEVELS digests. */
size_t merkle_frontier_write(const struct merkle_frontier *f, uint8_t *into);
enum err merkle_frontier_read(uint64_t size, const uint8_t *bytes, size_t len, struct merkle_frontier *ret) MUST_CHECK;

/* The leaves appended last, for their paths. */
struct merkle_batch;

/* `before` is the tree without these leaves. Both stay the caller's. NULL without memory. */
struct merkle_batch *merkle_batch_new(struct arena *arena, const struct merkle_frontier *before,
                                      const struct digest *leaves, size_t count) MUST_CHECK;
/* The path of the leaf at this index of the batch in the tree that ends with the batch. Returns its length. */
size_t merkle_batch_path(const struct merkle_batch *b, size_t index, struct digest path[MERKLE_LEVELS]);

/* Whether the path leads from the leaf at this position to the root of the tree of this size (section 2.1.3.2). */
bool merkle_path_holds(const struct digest *leaf, uint64_t position, uint64_t size, const struct digest *path,
                       size_t len, const struct digest *root) MUST_CHECK;

#endif
