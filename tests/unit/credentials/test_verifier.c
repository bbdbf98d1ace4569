#include "credentials/verifier.h"

#include <pthread.h>
#include <semaphore.h>

#include "../base/unit.h"

/* bcrypt of the password, at the lowest cost. */
#define HASH "$2b$04$PyDOIgvBvOuDd7H7zP/KbOrdOVLRACbKJ7wwSpluvP4rDia8cNbI6"
#define PASSWORD "canary-password-94c2"

struct check {
    struct verification v;
    sem_t *done;
    int times;
};

static void verified(struct verification *v)
{
    struct check *a = OWNER_OF(v, struct check, v);
    a->times++;
    sem_post(a->done);
}

static struct check check(sem_t *done, const char *password, const char *hash)
{
    return (struct check){.v = {.password = str_of(password), .hash = str_of(hash), .verified = verified},
                          .done = done};
}

static void each_question_is_told_once_what_is_true_of_it(void **state)
{
    (void)state;
    enum { COUNT = 24 };
    sem_t done;
    sem_init(&done, 0, 0);
    struct verifier *verifier = verifier_start(2, NULL);
    assert_non_null(verifier);
    struct check all[COUNT];
    for (int i = 0; i < COUNT; i++) {
        all[i] = check(&done, i % 2 ? PASSWORD : "another", i % 3 ? HASH : NULL);
        assert_int_equal(verifier_ask(verifier, &all[i].v), OK);
    }
    for (int i = 0; i < COUNT; i++)
        sem_wait(&done);
    verifier_stop(verifier);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(all[i].times, 1);
        assert_int_equal(all[i].v.err, OK);
        assert_int_equal(all[i].v.verdict.matches, i % 2 && i % 3);
    }
    sem_destroy(&done);
}

static void too_many_that_wait_are_refused_and_those_taken_are_told_before_it_stops(void **state)
{
    (void)state;
    enum { COUNT = 400 };
    static struct check all[COUNT];
    sem_t done;
    sem_init(&done, 0, 0);
    struct verifier *verifier = verifier_start(1, NULL);
    assert_non_null(verifier);
    int taken = 0, refused = 0;
    for (int i = 0; i < COUNT; i++) {
        all[i] = check(&done, PASSWORD, HASH);
        enum err e = verifier_ask(verifier, &all[i].v);
        assert_true(e == OK || e == ERR_FULL);
        e ? refused++ : taken++;
    }
    assert_true(refused > 0);
    verifier_stop(verifier);
    int times = 0;
    for (int i = 0; i < COUNT; i++)
        times += all[i].times;
    assert_int_equal(times, taken);
    sem_destroy(&done);
}

static void a_decoy_never_matches_and_can_be_replaced_while_checks_run(void **state)
{
    (void)state;
    enum { COUNT = 40 };
    sem_t done;
    sem_init(&done, 0, 0);
    struct verifier *verifier = verifier_start(2, NULL);
    assert_non_null(verifier);
    struct check all[COUNT];
    for (int i = 0; i < COUNT; i++) {
        struct password_decoy decoy;
        assert_int_equal(password_decoy_like(i % 2 ? STR("$2b$04$") : STR("$argon2id$v=19$m=8,t=1,p=1$"), &decoy), OK);
        verifier_set_decoy(verifier, &decoy);
        all[i] = check(&done, PASSWORD, i % 4 ? "$unknown$" : NULL);
        assert_int_equal(verifier_ask(verifier, &all[i].v), OK);
    }
    for (int i = 0; i < COUNT; i++)
        sem_wait(&done);
    verifier_stop(verifier);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(all[i].v.err, OK);
        assert_false(all[i].v.verdict.matches);
        assert_int_equal(all[i].v.verdict.unsupported, i % 4 != 0);
    }
    sem_destroy(&done);
}

static void nothing_to_stop_is_fine(void **state)
{
    (void)state;
    verifier_stop(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_question_is_told_once_what_is_true_of_it),
        cmocka_unit_test(too_many_that_wait_are_refused_and_those_taken_are_told_before_it_stops),
        cmocka_unit_test(a_decoy_never_matches_and_can_be_replaced_while_checks_run),
        cmocka_unit_test(nothing_to_stop_is_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
