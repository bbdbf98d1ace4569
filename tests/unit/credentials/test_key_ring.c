/* Keys that are replaced while they are in use. The sanitizers see keys that are freed too early, twice or never. */
#include <pthread.h>
#include <stdatomic.h>

#include "credentials/key_ring.h"
#include "forge.h"

static struct jwt_keys *some_keys(void)
{
    struct jwt_keys *keys;
    struct why why;
    assert_int_equal(keys_of_secret(SECRET, &keys, &why), OK);
    return keys;
}

static void an_empty_ring_gives_none(void **state UNUSED)
{
    struct key_ring *ring = key_ring_new();
    assert_null(key_ring_take(ring));
    key_ring_give(ring, NULL);
    key_ring_free(ring);
}

static void keys_in_use_outlast_their_replacement(void **state UNUSED)
{
    struct key_ring *ring = key_ring_new();
    struct claims claims;
    key_ring_put(ring, some_keys());
    const struct jwt_keys *first = key_ring_take(ring), *again = key_ring_take(ring);
    assert_ptr_equal(first, again);
    uint64_t serial = jwt_keys_serial(first);
    key_ring_put(ring, some_keys());
    const struct jwt_keys *second = key_ring_take(ring);
    assert_true(jwt_keys_serial(second) != serial);
    key_ring_give(ring, first);
    assert_int_equal(jwt_verify(again, str_of(hs256("{\"exp\":1900000000}")), 0, &claims), JWT_FINE);
    key_ring_give(ring, again);
    key_ring_give(ring, second);
    key_ring_free(ring);
}

enum { THREADS = 3, ROUNDS = 300 };

struct users {
    struct key_ring *ring;
    char token[512];
    atomic_int good;
};

static void *use_often(void *context)
{
    struct users *users = context;
    for (int i = 0; i < ROUNDS; i++) {
        struct claims claims;
        const struct jwt_keys *keys = key_ring_take(users->ring);
        if (jwt_verify(keys, str_of(users->token), 0, &claims) == JWT_FINE)
            users->good++;
        key_ring_give(users->ring, keys);
    }
    return NULL;
}

static void threads_use_keys_while_others_replace_them(void **state UNUSED)
{
    static struct users users;
    pthread_t threads[THREADS];
    users.ring = key_ring_new();
    key_ring_put(users.ring, some_keys());
    snprintf(users.token, sizeof users.token, "%s", hs256("{\"exp\":1900000000}"));
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_often, &users), 0);
    for (int i = 0; i < ROUNDS; i++)
        key_ring_put(users.ring, some_keys());
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(users.good, THREADS * ROUNDS);
    key_ring_free(users.ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_ring_gives_none),
        cmocka_unit_test(keys_in_use_outlast_their_replacement),
        cmocka_unit_test(threads_use_keys_while_others_replace_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
