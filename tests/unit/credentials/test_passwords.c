#include "credentials/passwords.h"

#include <crypt.h>
#include <sodium.h>
#include <string.h>

#include "../base/unit.h"

/* Hashes made by other programs: the test vectors of crypt_blowfish, and PostgreSQL's. */
#define U_STAR_U "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"

/* Replaces crypt_rn(), to count calls and to make them fail. */
static int hashed;
static char setting[64];
static bool hashing_fails;
char *__real_crypt_rn(const char *phrase, const char *with, void *data, int size);
char *__wrap_crypt_rn(const char *phrase, const char *with, void *data, int size);

char *__wrap_crypt_rn(const char *phrase, const char *with, void *data, int size)
{
    hashed++;
    assert_int_equal(str_copy(str_of(with), setting, sizeof setting), OK);
    return hashing_fails ? NULL : __real_crypt_rn(phrase, with, data, size);
}

static bool matches_bytes(struct str password, struct str hash)
{
    struct password_verdict verdict = {.matches = !hash.at}; /* must be overwritten */
    assert_int_equal(password_check(password, hash, &password_decoy_usual, &verdict), OK);
    return verdict.matches;
}

static bool matches(const char *password, const char *hash)
{
    return matches_bytes(str_of(password), str_of(hash));
}

static void the_password_behind_a_hash_matches_and_no_other(void **state UNUSED)
{
    assert_true(matches("U*U", U_STAR_U));
    assert_false(matches("U*U*", U_STAR_U));
    assert_false(matches("U*", U_STAR_U));
    assert_false(matches("u*u", U_STAR_U));
    /* $2b$ and $2y$ are equivalent. */
    assert_true(matches("U*U", "$2b$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"));
    assert_true(matches("U*U", "$2y$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"));
    assert_true(matches("\xff\xff\xa3", "$2y$05$/OK.fbVrR/bpIqNJ5ianF.CE5elHaaO4EbggVDjb8P19RukzXSM3e"));
}

static void supabases_own_form_matches(void **state UNUSED)
{
    assert_true(matches("correct horse", "$2a$10$wxRi.yqGZcNE8BvDGzkuEepz7n/COrQjRfOpTvtlJRDYg7SM3IJp2"));
    assert_false(matches("correct horses", "$2a$10$wxRi.yqGZcNE8BvDGzkuEepz7n/COrQjRfOpTvtlJRDYg7SM3IJp2"));
}

static void bcrypt_sees_72_bytes(void **state UNUSED)
{
    static const char hash[] = "$2a$04$wxRi.yqGZcNE8BvDGzkuEeJVeGqOBx1QvX.vJVuxqkRZbnNFlA5H.";
    char password[600];
    memset(password, 'a', sizeof password);
    assert_true(matches_bytes((struct str){password, 72}, str_of(hash)));
    assert_true(matches_bytes((struct str){password, 73}, str_of(hash)));
    assert_true(matches_bytes((struct str){password, sizeof password}, str_of(hash)));
    assert_false(matches_bytes((struct str){password, 71}, str_of(hash)));
}

static void an_empty_password_and_one_with_a_nul_match_nothing(void **state UNUSED)
{
    static const char of_nothing[] = "$2a$05$CCCCCCCCCCCCCCCCCCCCC.7uG0VCzI2bS7j6ymqJi9CdcdxiRTWNy";
    assert_false(matches("", of_nothing));
    assert_false(matches_bytes((struct str){NULL, 0}, str_of(of_nothing)));
    assert_false(matches_bytes((struct str){"\0", 1}, str_of(of_nothing)));
    assert_false(matches_bytes((struct str){"U*U\0U*U", 7}, str_of(U_STAR_U)));
    assert_false(matches_bytes((struct str){"U*U\0", 4}, str_of(U_STAR_U)));
    /* The password ends at its length, not at a NUL. */
    assert_true(matches_bytes((struct str){"U*U\0", 3}, str_of(U_STAR_U)));
}

/* The test vectors of the reference implementation. */
#define ARGON2ID "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4"
#define ARGON2ID_TWO_LANES "$argon2id$v=19$m=256,t=2,p=2$c29tZXNhbHQ$bQk8UB/VmZZF4Oo79iDXuL5/0ttZwg2f/5U52iv1cDc"
#define ARGON2I "$argon2i$v=19$m=256,t=2,p=1$c29tZXNhbHQ$iekCn0Y3spW+sCcFanM2xBT63UP2sghkUoHLIUpWRS8"

static void an_argon2_hash_matches_its_password_and_no_other(void **state UNUSED)
{
    const char *const hashes[] = {
        ARGON2ID, ARGON2ID_TWO_LANES, ARGON2I,
        "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"};
    hashed = 0;
    for (size_t i = 0; i < COUNT_OF(hashes); i++) {
        assert_true(matches("password", hashes[i]));
        assert_false(matches("Password", hashes[i]));
        assert_false(matches("password ", hashes[i]));
        assert_false(matches("", hashes[i]));
        assert_false(matches_bytes((struct str){"password\0", 9}, str_of(hashes[i])));
    }
    assert_int_equal(hashed, 0); /* no bcrypt beside it */
}

/* One that asks for gigabytes or hours is not begun: it is no more than a wrong password. */
static void an_argon2_hash_beyond_the_bounds_is_not_computed(void **state UNUSED)
{
    const char *const hashes[] = {
        "$argon2id$v=19$m=262145,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
        "$argon2id$v=19$m=4294967295,t=1,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
        "$argon2id$v=19$m=99999999999999999999,t=1,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
        "$argon2id$v=19$m=256,t=11,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
        "$argon2id$v=19$m=256,t=2,p=17$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
        "$argon2id$v=19$m=-1,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
        "$argon2id$v=19$t=2,m=256,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
        "$argon2id$v=16$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
        "$argon2d$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
        "$argon2id$v=19$m=256,t=2,p=1,keyid=x$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
        "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ",
        "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$",
        "$argon2id$v=19$m=256,t=2,p=1$$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
        "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4r!sF5h7TKyQwu9U1bMCHGi/4",
        "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4$",
        "$argon2id$",
        "$argon2id",
        "argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
        "$fbscrypt$v=1,n=14,r=8,p=1,ss=Bw==,sk=c2s=$c2FsdA==$aGFzaA==",
    };
    for (size_t i = 0; i < COUNT_OF(hashes); i++) {
        struct password_verdict verdict = {.matches = true};
        hashed = 0;
        assert_int_equal(password_check(STR("password"), str_of(hashes[i]), &password_decoy_usual, &verdict), OK);
        assert_false(verdict.matches);
        assert_true(verdict.unsupported);
        assert_int_equal(hashed, 1); /* the decoy */
    }
}

static void only_a_hash_that_is_there_can_be_unsupported(void **state UNUSED)
{
    const char *const hashes[] = {NULL, "", U_STAR_U, ARGON2ID};
    for (size_t i = 0; i < COUNT_OF(hashes); i++) {
        struct password_verdict verdict = {.unsupported = true};
        assert_int_equal(password_check(STR("x"), str_of(hashes[i]), &password_decoy_usual, &verdict), OK);
        assert_false(verdict.unsupported);
    }
}

static void a_decoy_takes_the_cost_it_is_told(void **state UNUSED)
{
    struct password_decoy decoy;
    struct password_verdict verdict;
    assert_int_equal(password_decoy_like(STR("$2b$05$"), &decoy), OK);
    assert_int_equal(password_check(STR("U*U"), STR(""), &decoy, &verdict), OK);
    assert_false(verdict.matches);
    assert_true(str_starts(str_of(setting), STR("$2b$05$")));

    hashed = 0;
    assert_int_equal(password_decoy_like(STR("$argon2id$v=19$m=256,t=2,p=1$"), &decoy), OK);
    assert_int_equal(crypto_pwhash_str_needs_rehash(decoy.hash, 2, (size_t)256 * 1024),
                     0); /* it can be read, at this cost */
    assert_int_equal(password_check(STR("U*U"), STR(""), &decoy, &verdict), OK);
    assert_false(verdict.matches);
    assert_int_equal(hashed, 0);

    const char *const wrong[] = {"",          "$2a$15$", "$2a$", "$2x$10$", "$6$", "$argon2id$v=19$m=262145,t=2,p=1$",
                                 "$argon2id$"};
    struct password_decoy untouched = decoy;
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_int_equal(password_decoy_like(str_of(wrong[i]), &decoy), ERR_INPUT);
    assert_memory_equal(&untouched, &decoy, sizeof decoy);
}

static void what_is_neither_bcrypt_nor_argon2_matches_nothing(void **state UNUSED)
{
    const char *const hashes[] = {
        NULL,
        "",
        "U*U",
        "x",
        "*0",
        "$2x$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW",
        "$2$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW",
        "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOe",
        "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeWW",
        "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOe ",
        "$2a$05$CCCCCCCCCCCCCCCCCCCCC!E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW",
        "$2a$5$$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW",
        "$2a$03$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW",
        "$2a$+5$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW",
        /* These would take seconds, hours or years. */
        "$2a$15$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW",
        "$2a$31$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW",
        "$2a$99$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW",
        /* Unused bits of the salt are set. */
        "$2a$05$CCCCCCCCCCCCCCCCCCCCC/E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW",
        /* Other methods of crypt(). */
        "$6$saltstring$svn8UoSVapNtMuq1ukKS4tPQd8iKwSMHWjlO/O817G3uBnIFNjnQJuesI68OTLiBFdcbYEdFCoEOfaS35inz1",
        "$1$saltsalt$qjXMvbEw8oaL.CzflDtaK/",
        "abJnggxhB/yWI",
    };
    for (size_t i = 0; i < COUNT_OF(hashes); i++)
        assert_false(matches_bytes(STR("U*U"), str_of(hashes[i])));
    char with_nul[61] = U_STAR_U;
    with_nul[30] = '\0';
    assert_false(matches_bytes(STR("U*U"), (struct str){with_nul, 60}));
}

/* The time does not reveal whether an address is registered or has a password. */
static void whatever_is_asked_one_hash_is_made(void **state UNUSED)
{
    const struct {
        const char *password, *hash, *setting;
    } cases[] = {
        {"U*U", U_STAR_U, "$2a$05$CCC"},
        {"", U_STAR_U, "$2a$05$CCC"},
        {"U*U", NULL, "$2a$10$"},
        {"U*U", "", "$2a$10$"},
        {"U*U", "*", "$2a$10$"},
        {"U*U", "$2a$31$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW", "$2a$10$"},
        {NULL, NULL, "$2a$10$"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        hashed = 0;
        (void)matches(cases[i].password, cases[i].hash);
        assert_int_equal(hashed, 1);
        assert_int_equal(strlen(setting), 60);
        assert_true(str_starts(str_of(setting), str_of(cases[i].setting)));
    }
}

static void a_hash_that_cannot_be_made_says_nothing_about_the_password(void **state UNUSED)
{
    struct password_verdict verdict = {.matches = true};
    hashing_fails = true;
    assert_int_equal(password_check(STR("U*U"), STR(U_STAR_U), &password_decoy_usual, &verdict), ERR_SYSTEM);
    hashing_fails = false;
    assert_true(verdict.matches); /* untouched */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_password_behind_a_hash_matches_and_no_other),
        cmocka_unit_test(supabases_own_form_matches),
        cmocka_unit_test(bcrypt_sees_72_bytes),
        cmocka_unit_test(an_empty_password_and_one_with_a_nul_match_nothing),
        cmocka_unit_test(an_argon2_hash_matches_its_password_and_no_other),
        cmocka_unit_test(an_argon2_hash_beyond_the_bounds_is_not_computed),
        cmocka_unit_test(only_a_hash_that_is_there_can_be_unsupported),
        cmocka_unit_test(a_decoy_takes_the_cost_it_is_told),
        cmocka_unit_test(what_is_neither_bcrypt_nor_argon2_matches_nothing),
        cmocka_unit_test(whatever_is_asked_one_hash_is_made),
        cmocka_unit_test(a_hash_that_cannot_be_made_says_nothing_about_the_password),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
