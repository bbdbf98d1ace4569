#include "proof/merkle.h"

#include <string.h>

#include "base/defs.h"

static struct digest hash_nodes(const struct digest *left, const struct digest *right)
{
    const struct str parts[] = {{"\1", 1}, digest_str(left), digest_str(right)};
    return digest_sha256_parts(parts, COUNT_OF(parts));
}

struct digest merkle_leaf(struct str fact)
{
    const struct str parts[] = {{"\0", 1}, fact};
    return digest_sha256_parts(parts, COUNT_OF(parts));
}

static void append_one(struct merkle_frontier *f, struct digest node)
{
    int level = 0;
    for (; f->size >> level & 1; level++)
        node = hash_nodes(&f->peaks[level], &node);
    f->peaks[level] = node;
    f->size++;
}

void merkle_append(struct merkle_frontier *f, const struct digest *leaves, size_t count)
{
    for (size_t i = 0; i < count; i++)
        append_one(f, leaves[i]);
}

/* The root of the leaves right of the last complete subtree of 2^above leaves; false when there are none. */
static bool fold(const struct merkle_frontier *f, int above, struct digest *ret)
{
    bool any = false;
    for (int level = 0; level < above; level++)
        if (f->size >> level & 1) {
            *ret = any ? hash_nodes(&f->peaks[level], ret) : f->peaks[level];
            any = true;
        }
    return any;
}

struct digest merkle_root(const struct merkle_frontier *f)
{
    struct digest root;
    return fold(f, MERKLE_LEVELS, &root) ? root : digest_sha256(STR(""));
}

size_t merkle_frontier_write(const struct merkle_frontier *f, uint8_t *into)
{
    size_t len = 0;
    for (int level = 0; level < MERKLE_LEVELS; level++)
        if (f->size >> level & 1) {
            memcpy(into + len, f->peaks[level].bytes, DIGEST_LEN);
            len += DIGEST_LEN;
        }
    return len;
}

enum err merkle_frontier_read(uint64_t size, const uint8_t *bytes, size_t len, struct merkle_frontier *ret)
{
    size_t peaks = (size_t)__builtin_popcountll(size);
    if (size >> MERKLE_LEVELS || len != peaks * DIGEST_LEN)
        return ERR_INPUT;
    *ret = (struct merkle_frontier){.size = size};
    for (int level = 0; level < MERKLE_LEVELS; level++)
        if (size >> level & 1) {
            memcpy(ret->peaks[level].bytes, bytes, DIGEST_LEN);
            bytes += DIGEST_LEN;
        }
    return OK;
}

/* Paths */

/* The complete subtrees of one level that contain leaves of the batch. */
struct level {
    uint64_t first; /* index of nodes[0] at this level */
    size_t count;
    struct digest *nodes;
};

struct merkle_batch {
    struct merkle_frontier before, after;
    struct level levels[MERKLE_LEVELS];
};

/* A complete subtree: wholly before the batch it can only be a peak, since it is the left neighbour of one with leaves of the batch. */
static struct digest node_at(const struct merkle_batch *b, int level, uint64_t index)
{
    const struct level *l = &b->levels[level];
    return index < l->first ? b->before.peaks[level] : l->nodes[index - l->first];
}

static bool build_level(struct merkle_batch *b, struct arena *arena, int level)
{
    struct level *l = &b->levels[level];
    l->first = b->before.size >> level;
    l->count = (size_t)((b->after.size >> level) - l->first);
    if (l->count == 0)
        return true;
    l->nodes = arena_take(arena, l->count * sizeof *l->nodes);
    if (!l->nodes)
        return false;
    for (size_t i = 0; i < l->count; i++) {
        uint64_t at = 2 * (l->first + i);
        struct digest left = node_at(b, level - 1, at), right = node_at(b, level - 1, at + 1);
        l->nodes[i] = hash_nodes(&left, &right);
    }
    return true;
}

struct merkle_batch *merkle_batch_new(struct arena *arena, const struct merkle_frontier *before,
                                      const struct digest *leaves, size_t count)
{
    struct merkle_batch *b = arena_take(arena, sizeof *b);
    struct digest *copy = arena_take(arena, (count ? count : 1) * sizeof *copy);
    if (!b || !copy)
        return NULL;
    if (count)
        memcpy(copy, leaves, count * sizeof *copy);
    b->before = b->after = *before;
    merkle_append(&b->after, leaves, count);
    b->levels[0] = (struct level){before->size, count, copy};
    for (int level = 1; level < MERKLE_LEVELS; level++)
        if (!build_level(b, arena, level))
            return NULL;
    return b;
}

/* The root of the leaves from `mid` to `end`, which follow a complete subtree of this level. */
static struct digest right_part(const struct merkle_batch *b, uint64_t mid, uint64_t end, int level)
{
    struct digest rest;
    bool complete = end - mid == UINT64_C(1) << level;
    return complete || !fold(&b->after, level, &rest) ? node_at(b, level, mid >> level) : rest;
}

size_t merkle_batch_path(const struct merkle_batch *b, size_t index, struct digest path[MERKLE_LEVELS])
{
    uint64_t at = b->before.size + index, from = 0, end = b->after.size;
    struct digest down[MERKLE_LEVELS]; /* from the root to the leaf */
    size_t len = 0;
    while (end - from > 1) {
        int level = 63 - __builtin_clzll(end - from - 1);
        uint64_t mid = from + (UINT64_C(1) << level);
        if (at < mid) {
            down[len++] = right_part(b, mid, end, level);
            end = mid;
        } else {
            down[len++] = node_at(b, level, from >> level);
            from = mid;
        }
    }
    for (size_t i = 0; i < len; i++)
        path[i] = down[len - 1 - i];
    return len;
}

bool merkle_path_holds(const struct digest *leaf, uint64_t position, uint64_t size, const struct digest *path,
                       size_t len, const struct digest *root)
{
    if (position >= size)
        return false;
    uint64_t fn = position, sn = size - 1;
    struct digest at = *leaf;
    for (size_t i = 0; i < len; i++) {
        if (sn == 0)
            return false;
        if (fn & 1 || fn == sn) {
            at = hash_nodes(&path[i], &at);
            while (!(fn & 1) && fn != 0) {
                fn >>= 1;
                sn >>= 1;
            }
        } else {
            at = hash_nodes(&at, &path[i]);
        }
        fn >>= 1;
        sn >>= 1;
    }
    return sn == 0 && digest_eq(&at, root);
}
