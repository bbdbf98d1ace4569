#include "gate/credential_cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "../base/unit.h"
#include "base/clock.h"

static struct digest credential(uint64_t n)
{
    return digest_sha256((struct str){(const char *)&n, sizeof n});
}

static const struct cached_credential some_credential = {
    .customer = {1, 2}, .id = {3, 4}, .session = {5, 6}, .admin = true};

/* Sets of ended ids, one of each kind. */
struct ended {
    struct customer_set *of[ENDED_KINDS];
};

static struct ended ended_new(void)
{
    struct ended ended;
    for (int kind = 0; kind < ENDED_KINDS; kind++)
        assert_non_null(ended.of[kind] = customer_set_new());
    return ended;
}

static void ended_free(struct ended *ended)
{
    for (int kind = 0; kind < ENDED_KINDS; kind++)
        customer_set_free(ended->of[kind]);
}

static bool is_cached(struct credential_cache *credentials, enum credential_kind kind, uint64_t n, int64_t now_ns)
{
    struct cached_credential as;
    struct digest by = credential(n);
    return credential_cache_find(credentials, kind, &by, now_ns, &as) != 0;
}

static void add(struct credential_cache *credentials, enum credential_kind kind, uint64_t n,
                const struct cached_credential *as, int64_t asked_ns, int64_t until_ns)
{
    struct digest by = credential(n);
    credential_cache_add(credentials, kind, &by, as, asked_ns, until_ns);
}

static void what_was_learnt_is_known_for_a_minute_and_never_beyond_its_end(void **state UNUSED)
{
    struct credential_cache *credentials = credential_cache_new(1024);
    struct cached_credential as;
    struct digest by = credential(1);
    assert_int_equal(credential_cache_find(credentials, CREDENTIAL_TOKEN, &by, 0, &as), 0);
    add(credentials, CREDENTIAL_TOKEN, 1, &some_credential, 1000, INT64_MAX);
    assert_int_equal(credential_cache_find(credentials, CREDENTIAL_TOKEN, &by, 1000 + CREDENTIAL_CACHE_NS - 1, &as),
                     1000 + CREDENTIAL_CACHE_NS);
    assert_true(as.admin && as.customer.low == 2 && as.id.high == 3);
    assert_false(is_cached(credentials, CREDENTIAL_TOKEN, 1, 1000 + CREDENTIAL_CACHE_NS));
    add(credentials, CREDENTIAL_TOKEN, 1, &some_credential, 1000, 5000);
    assert_true(is_cached(credentials, CREDENTIAL_TOKEN, 1, 4999));
    assert_false(is_cached(credentials, CREDENTIAL_TOKEN, 1, 5000));
    credential_cache_free(credentials);
}

static void a_key_is_no_token(void **state UNUSED)
{
    struct credential_cache *credentials = credential_cache_new(1024);
    add(credentials, CREDENTIAL_KEY, 1, &some_credential, 1000, INT64_MAX);
    assert_false(is_cached(credentials, CREDENTIAL_TOKEN, 1, 1000));
    assert_false(is_cached(credentials, CREDENTIAL_USER, 1, 1000));
    assert_true(is_cached(credentials, CREDENTIAL_KEY, 1, 1000));
    credential_cache_free(credentials);
}

static void what_leads_to_a_customer_or_a_key_is_forgotten_and_the_rest_stays(void **state UNUSED)
{
    struct credential_cache *credentials = credential_cache_new(1024);
    struct ended ended = ended_new();
    int64_t now = clock_ns();
    struct cached_credential other = {.customer = {7, 8}, .id = {3, 4}}, third = {.customer = {9, 9}, .id = {5, 5}};
    add(credentials, CREDENTIAL_TOKEN, 1, &some_credential, now, INT64_MAX);
    add(credentials, CREDENTIAL_KEY, 2, &other, now, INT64_MAX);
    add(credentials, CREDENTIAL_USER, 3, &other, now, INT64_MAX);
    add(credentials, CREDENTIAL_KEY, 4, &third, now, INT64_MAX);
    assert_int_equal(customer_set_add(ended.of[ENDED_CUSTOMER], some_credential.customer), OK);
    assert_int_equal(customer_set_add(ended.of[ENDED_KEY], other.id), OK);
    credential_cache_remove(credentials, ended.of);
    assert_false(is_cached(credentials, CREDENTIAL_TOKEN, 1, now));
    assert_false(is_cached(credentials, CREDENTIAL_KEY, 2, now));
    assert_true(is_cached(credentials, CREDENTIAL_USER, 3, now)); /* the user's id equals the removed key's */
    assert_true(is_cached(credentials, CREDENTIAL_KEY, 4, now));
    credential_cache_remove(credentials, NULL);
    assert_false(is_cached(credentials, CREDENTIAL_USER, 3, now));
    assert_false(is_cached(credentials, CREDENTIAL_KEY, 4, now));
    ended_free(&ended);
    credential_cache_free(credentials);
}

static void what_leads_to_a_user_or_a_session_is_forgotten_and_the_rest_stays(void **state UNUSED)
{
    struct credential_cache *credentials = credential_cache_new(1024);
    struct ended users = ended_new(), sessions = ended_new();
    int64_t now = clock_ns();
    struct cached_credential other_session = some_credential, other_user = some_credential;
    other_session.session = (struct customer_id){7, 7};
    other_user.id = (struct customer_id){8, 8};
    add(credentials, CREDENTIAL_TOKEN, 1, &some_credential, now, INT64_MAX);
    add(credentials, CREDENTIAL_TOKEN, 2, &other_session, now, INT64_MAX);
    add(credentials, CREDENTIAL_TOKEN, 3, &other_user, now, INT64_MAX);
    add(credentials, CREDENTIAL_USER, 4, &some_credential, now, INT64_MAX);
    add(credentials, CREDENTIAL_KEY, 5, &some_credential, now, INT64_MAX); /* its id equals the user's */
    assert_int_equal(customer_set_add(sessions.of[ENDED_SESSION], other_session.session), OK);
    credential_cache_remove(credentials, sessions.of);
    assert_false(is_cached(credentials, CREDENTIAL_TOKEN, 2, now));
    assert_true(is_cached(credentials, CREDENTIAL_TOKEN, 1, now));
    assert_int_equal(customer_set_add(users.of[ENDED_USER], some_credential.id), OK);
    credential_cache_remove(credentials, users.of);
    assert_false(is_cached(credentials, CREDENTIAL_TOKEN, 1, now));
    assert_false(is_cached(credentials, CREDENTIAL_USER, 4, now));
    assert_true(is_cached(credentials, CREDENTIAL_TOKEN, 3, now));
    assert_true(is_cached(credentials, CREDENTIAL_KEY, 5, now));
    ended_free(&users);
    ended_free(&sessions);
    credential_cache_free(credentials);
}

static void what_was_asked_before_a_forgetting_is_not_learnt_after_it(void **state UNUSED)
{
    struct credential_cache *credentials = credential_cache_new(1024);
    int64_t before = clock_ns();
    credential_cache_remove(credentials, NULL);
    add(credentials, CREDENTIAL_TOKEN, 1, &some_credential, before, INT64_MAX);
    assert_false(is_cached(credentials, CREDENTIAL_TOKEN, 1, clock_ns()));
    int64_t after = clock_ns() + 1;
    add(credentials, CREDENTIAL_TOKEN, 1, &some_credential, after, INT64_MAX);
    assert_true(is_cached(credentials, CREDENTIAL_TOKEN, 1, after));
    credential_cache_free(credentials);
}

static void a_flood_of_credentials_stays_within_the_ceiling(void **state UNUSED)
{
    struct credential_cache *credentials = credential_cache_new(1024);
    size_t known = 0;
    for (uint64_t n = 0; n < 20000; n++) {
        add(credentials, CREDENTIAL_KEY, n, &some_credential, (int64_t)n + 1, INT64_MAX);
        assert_true(is_cached(credentials, CREDENTIAL_KEY, n, (int64_t)n + 1));
    }
    for (uint64_t n = 0; n < 20000; n++)
        known += is_cached(credentials, CREDENTIAL_KEY, n, 20000);
    assert_in_range(known, 512, 2048);
    assert_true(is_cached(credentials, CREDENTIAL_KEY, 19999, 20000));
    credential_cache_free(credentials);
}

struct busy {
    struct credential_cache *credentials;
    atomic_bool stop;
};

static void *add_until_stopped(void *context)
{
    struct busy *b = context;
    uint64_t dice = 3;
    while (!atomic_load(&b->stop)) {
        uint64_t n = number_below(&dice, 500);
        struct cached_credential as = {.customer = {n, n}, .id = {n, n}}, found;
        struct digest by = credential(n);
        add(b->credentials, CREDENTIAL_TOKEN, n, &as, clock_ns(), INT64_MAX);
        if (credential_cache_find(b->credentials, CREDENTIAL_TOKEN, &by, clock_ns(), &found) && found.customer.low != n)
            abort();
    }
    return NULL;
}

static void many_threads_learn_and_forget_at_once(void **state UNUSED)
{
    struct busy b = {.credentials = credential_cache_new(1024)};
    struct ended ended = ended_new();
    pthread_t threads[3];
    for (uint64_t n = 0; n < 500; n += 2)
        assert_int_equal(customer_set_add(ended.of[ENDED_CUSTOMER], (struct customer_id){n, n}), OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_until_stopped, &b), 0);
    for (int i = 0; i < 300; i++)
        credential_cache_remove(b.credentials, ended.of);
    atomic_store(&b.stop, true);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    credential_cache_remove(b.credentials, ended.of);
    for (uint64_t n = 0; n < 500; n += 2)
        assert_false(is_cached(b.credentials, CREDENTIAL_TOKEN, n, clock_ns()));
    ended_free(&ended);
    credential_cache_free(b.credentials);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_learnt_is_known_for_a_minute_and_never_beyond_its_end),
        cmocka_unit_test(a_key_is_no_token),
        cmocka_unit_test(what_leads_to_a_customer_or_a_key_is_forgotten_and_the_rest_stays),
        cmocka_unit_test(what_leads_to_a_user_or_a_session_is_forgotten_and_the_rest_stays),
        cmocka_unit_test(what_was_asked_before_a_forgetting_is_not_learnt_after_it),
        cmocka_unit_test(a_flood_of_credentials_stays_within_the_ceiling),
        cmocka_unit_test(many_threads_learn_and_forget_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
