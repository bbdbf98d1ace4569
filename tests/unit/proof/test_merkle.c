/* Merkle trees: roots and paths are those of RFC 9162, however the leaves were divided into batches. */
#include "proof/merkle.h"

#include <stdio.h>

#include "../base/unit.h"

#define LEAVES 70

static struct digest leaves[LEAVES];

static int make_leaves(void **state UNUSED)
{
    for (size_t i = 0; i < LEAVES; i++) {
        char fact[8];
        snprintf(fact, sizeof fact, "%zu", i);
        leaves[i] = merkle_leaf(str_of(fact));
    }
    return 0;
}

/* MTH of section 2.1.1, as it is written there. */
static struct digest naive_root(const struct digest *d, size_t n)
{
    if (n == 0)
        return digest_sha256(STR(""));
    if (n == 1)
        return d[0];
    size_t k = 1;
    while (k * 2 < n)
        k *= 2;
    struct digest left = naive_root(d, k), right = naive_root(d + k, n - k);
    const struct str parts[] = {{"\1", 1}, digest_str(&left), digest_str(&right)};
    return digest_sha256_parts(parts, COUNT_OF(parts));
}

static void known_hashes(void **state UNUSED)
{
    struct merkle_frontier empty = {0};
    struct digest root = merkle_root(&empty), leaf = merkle_leaf(STR(""));
    char hex[DIGEST_HEX_LEN + 1];
    digest_hex(&root, hex);
    assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    digest_hex(&leaf, hex);
    assert_string_equal(hex, "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d");
}

static void roots_are_those_of_the_definition(void **state UNUSED)
{
    struct merkle_frontier f = {0};
    for (size_t n = 0; n <= LEAVES; n++) {
        struct digest root = merkle_root(&f), expected = naive_root(leaves, n);
        assert_true(digest_eq(&root, &expected));
        if (n < LEAVES)
            merkle_append(&f, &leaves[n], 1);
    }
}

static void every_leaf_of_every_batch_has_a_path_that_holds(void **state UNUSED)
{
    for (size_t before = 0; before < LEAVES; before++)
        for (size_t end = before + 1; end <= LEAVES; end++) {
            AUTO(arena) struct arena *arena = arena_new(4096, 1 << 20);
            struct merkle_frontier f = {0};
            merkle_append(&f, leaves, before);
            struct merkle_batch *b = merkle_batch_new(arena, &f, leaves + before, end - before);
            assert_non_null(b);
            struct digest root = naive_root(leaves, end), path[MERKLE_LEVELS];
            for (size_t i = before; i < end; i++) {
                size_t len = merkle_batch_path(b, i - before, path);
                assert_true(merkle_path_holds(&leaves[i], i, end, path, len, &root));
                assert_false(merkle_path_holds(&leaves[(i + 1) % LEAVES], i, end, path, len, &root));
                assert_false(end > 1 && merkle_path_holds(&leaves[i], (i + 1) % end, end, path, len, &root));
                assert_false(len > 0 && merkle_path_holds(&leaves[i], i, end, path, len - 1, &root));
            }
        }
}

static void a_frontier_can_be_stored_and_read(void **state UNUSED)
{
    uint8_t bytes[MERKLE_LEVELS * DIGEST_LEN];
    for (size_t n = 0; n <= LEAVES; n++) {
        struct merkle_frontier f = {0}, again;
        merkle_append(&f, leaves, n);
        size_t len = merkle_frontier_write(&f, bytes);
        assert_int_equal(merkle_frontier_read(n, bytes, len, &again), OK);
        struct digest one = merkle_root(&f), other = merkle_root(&again);
        assert_true(digest_eq(&one, &other));
        assert_int_equal(merkle_frontier_read(n, bytes, len + DIGEST_LEN, &again), ERR_INPUT);
    }
}

int main(void)
{
    const struct CMUnitTest promises[] = {
        cmocka_unit_test(known_hashes),
        cmocka_unit_test(roots_are_those_of_the_definition),
        cmocka_unit_test(every_leaf_of_every_batch_has_a_path_that_holds),
        cmocka_unit_test(a_frontier_can_be_stored_and_read),
    };
    return cmocka_run_group_tests(promises, make_leaves, NULL);
}
