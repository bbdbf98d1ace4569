#include "base/digest.h"

#include <stdlib.h>
#include <string.h>

#include "unit.h"

static void check_hex(struct digest d, const char *want)
{
    char hex[DIGEST_HEX_LEN + 1];
    digest_hex(&d, hex);
    assert_string_equal(hex, want);
}

/* The examples of FIPS 180, including one million times "a". */
static void the_quick_digest_is_blake2b(void **state UNUSED)
{
    check_hex(digest_quick(STR("abc")), "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
}

static void sha256_agrees_with_its_standard(void **state UNUSED)
{
    check_hex(digest_sha256(STR("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check_hex(digest_sha256((struct str){NULL, 0}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check_hex(digest_sha256(STR("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check_hex(digest_sha256(STR("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    check_hex(
        digest_sha256(STR("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqr"
                          "lmnopqrsmnopqrstnopqrstu")),
        "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");

    const size_t million = 1000000;
    char *many = malloc(million);
    assert_non_null(many);
    memset(many, 'a', million);
    check_hex(digest_sha256((struct str){many, million}),
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(many);
}

/* HMAC pads shorter keys with zeros and replaces longer ones by their digest, so RFC 4231's keys of other lengths can
 * be turned into keys of our length. */
static struct digest key_of(struct str s)
{
    if (s.len > 64)
        return digest_sha256(s);
    assert_true(s.len <= DIGEST_LEN);
    struct digest key = {{0}};
    memcpy(key.bytes, s.at, s.len);
    return key;
}

static void check_hmac(struct str key, struct str data, const char *want)
{
    struct digest k = key_of(key);
    check_hex(digest_hmac(&k, data), want);
}

static void hmac_agrees_with_rfc_4231(void **state UNUSED)
{
    char aa[131], dd[50], cd[50], ob[20], counting[25];
    memset(aa, 0xAA, sizeof aa);
    memset(dd, 0xDD, sizeof dd);
    memset(cd, 0xCD, sizeof cd);
    memset(ob, 0x0B, sizeof ob);
    for (size_t i = 0; i < sizeof counting; i++)
        counting[i] = (char)(i + 1);

    check_hmac((struct str){ob, 20}, STR("Hi There"),
               "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    check_hmac(STR("Jefe"), STR("what do ya want for nothing?"),
               "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    check_hmac((struct str){aa, 20}, (struct str){dd, 50},
               "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
    check_hmac((struct str){counting, 25}, (struct str){cd, 50},
               "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
    check_hmac((struct str){aa, 131}, STR("Test Using Larger Than Block-Size Key - Hash Key First"),
               "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    check_hmac((struct str){aa, 131},
               STR("This is a test using a larger than block-size key and a larger than block-size data. The key needs "
                   "to be hashed before being used by the HMAC algorithm."),
               "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

/* Appendix A.3 is the case without salt; our 32 bytes are the first of its 42. */
static void derived_keys_agree_with_rfc_5869(void **state UNUSED)
{
    char secret[22];
    memset(secret, 0x0B, sizeof secret);
    struct digest key;
    assert_int_equal(digest_derive((struct str){secret, sizeof secret}, "", &key), OK);
    check_hex(key, "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d");
}

/* RFC 5869 step by step: extract with a salt of zeros, expand once with the purpose and the byte 1. */
static void the_purpose_is_the_info_of_hkdf(void **state UNUSED)
{
    struct str master = STR("0123456789abcdef0123456789abcdef, and some more than one digest's length");
    struct digest zeros = {{0}}, key;
    struct digest extracted = digest_hmac(&zeros, master);
    assert_int_equal(digest_derive(master, "codes", &key), OK);
    struct digest want = digest_hmac(&extracted, STR("codes\x01"));
    assert_true(digest_eq(&key, &want));
}

static void purposes_and_masters_give_keys_of_their_own(void **state UNUSED)
{
    struct digest a, b, c, again;
    assert_int_equal(digest_derive(STR("master one"), "codes", &a), OK);
    assert_int_equal(digest_derive(STR("master one"), "cookies", &b), OK);
    assert_int_equal(digest_derive(STR("master two"), "codes", &c), OK);
    assert_int_equal(digest_derive(STR("master one"), "codes", &again), OK);
    assert_false(digest_eq(&a, &b));
    assert_false(digest_eq(&a, &c));
    assert_false(digest_eq(&b, &c));
    assert_true(digest_eq(&a, &again));
}

static void no_key_is_derived_from_nothing(void **state UNUSED)
{
    struct digest key = {{1, 2, 3}}, before = key;
    assert_int_equal(digest_derive(STR(""), "codes", &key), ERR_INPUT);
    assert_int_equal(digest_derive((struct str){NULL, 0}, "codes", &key), ERR_INPUT);
    assert_true(digest_eq(&key, &before));
}

static void one_bit_makes_digests_differ(void **state UNUSED)
{
    struct digest a = digest_sha256(STR("abc")), b = a;
    assert_true(digest_eq(&a, &b));
    for (size_t bit = 0; bit < sizeof b.bytes * 8; bit++) {
        b.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_false(digest_eq(&a, &b));
        b.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

static void a_wiped_secret_is_gone_and_its_neighbour_stays(void **state UNUSED)
{
    char secret[] = "hunter2!";
    secret_wipe(secret, 7);
    assert_memory_equal(secret, "\0\0\0\0\0\0\0!", 9);
    secret_wipe(secret, 0);
    assert_int_equal(secret[7], '!');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_quick_digest_is_blake2b),
        cmocka_unit_test(sha256_agrees_with_its_standard),
        cmocka_unit_test(hmac_agrees_with_rfc_4231),
        cmocka_unit_test(derived_keys_agree_with_rfc_5869),
        cmocka_unit_test(the_purpose_is_the_info_of_hkdf),
        cmocka_unit_test(purposes_and_masters_give_keys_of_their_own),
        cmocka_unit_test(no_key_is_derived_from_nothing),
        cmocka_unit_test(one_bit_makes_digests_differ),
        cmocka_unit_test(a_wiped_secret_is_gone_and_its_neighbour_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
