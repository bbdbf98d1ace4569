#include "credentials/passwords.h"

#include <crypt.h>
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
    bool matches = !hash.at; /* must be overwritten */
    assert_int_equal(password_check(password, hash, &matches), OK);
    return matches;
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

static void what_is_not_bcrypt_matches_nothing(void **state UNUSED)
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
        "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
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
    bool matches_it = true;
    hashing_fails = true;
    assert_int_equal(password_check(STR("U*U"), STR(U_STAR_U), &matches_it), ERR_SYSTEM);
    hashing_fails = false;
    assert_true(matches_it); /* untouched */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_password_behind_a_hash_matches_and_no_other),
        cmocka_unit_test(supabases_own_form_matches),
        cmocka_unit_test(bcrypt_sees_72_bytes),
        cmocka_unit_test(an_empty_password_and_one_with_a_nul_match_nothing),
        cmocka_unit_test(what_is_not_bcrypt_matches_nothing),
        cmocka_unit_test(whatever_is_asked_one_hash_is_made),
        cmocka_unit_test(a_hash_that_cannot_be_made_says_nothing_about_the_password),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
