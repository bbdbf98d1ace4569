/* Loading secrets and key sets; test_jwt.c verifies tokens with them. */
#include <pthread.h>
#include <stdatomic.h>

#include "forge.h"

static void refused(const char *text, const char *words)
{
    struct jwt_keys *keys = NULL;
    struct why why = {""};
    enum err e = keys_of_text(text, &keys, &why);
    assert_int_equal(e, ERR_INPUT);
    assert_null(keys);
    assert_non_null(strstr(why.text, "RECLAIM_JWKS_FILE"));
    if (!strstr(why.text, words))
        fail_msg("\"%s\" is not in \"%s\"", words, why.text);
}

static void a_secret_has_32_bytes_at_least(void **state UNUSED)
{
    struct jwt_keys *keys = NULL;
    struct why why = {""};
    char secret[JWT_SECRET_MAX + 2];
    memset(secret, 's', sizeof secret);
    for (size_t len = 0; len <= JWT_SECRET_MAX + 1; len++) {
        bool fine = len >= 32 && len <= JWT_SECRET_MAX;
        secret[len] = '\0';
        assert_int_equal(keys_of_secret(secret, &keys, &why), fine ? OK : ERR_INPUT);
        secret[len] = 's';
        if (fine) {
            assert_int_equal(jwt_keys_count(keys), 1);
            jwt_keys_free(keys);
        } else {
            assert_non_null(strstr(why.text, "RECLAIM_JWT_SECRET: its value (not shown) is not a secret of 32 to"));
        }
    }
}

static void a_secret_and_a_key_set_work_side_by_side(void **state UNUSED)
{
    struct jwt_keys *keys;
    struct why why;
    struct claims claims;
    char path[64], set[8192];
    EVP_PKEY *ec = EVP_EC_gen("P-256");
    snprintf(set, sizeof set, "{\"keys\":[%s]}", jwk(ec, ""));
    write_temporary(set, path);
    assert_int_equal(
        jwt_keys_new(&(struct jwt_sources){.own = &own_key, .secret = SECRET, .jwks_path = path}, &keys, &why), OK);
    unlink(path);
    assert_int_equal(jwt_verify(keys, str_of(hs256("{\"exp\":1900000000}")), 0, &claims), JWT_FINE);
    assert_int_equal(
        jwt_verify(keys, str_of(es256("{\"alg\":\"ES256\"}", "{\"exp\":1900000000}", ec, true)), 0, &claims), JWT_FINE);
    jwt_keys_free(keys);
    EVP_PKEY_free(ec);
}

static void a_name_that_is_too_long_is_refused(void **state UNUSED)
{
    struct jwt_keys *keys;
    struct why why = {""};
    char name[JWT_NAME_MAX + 2];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_int_equal(jwt_keys_new(&(struct jwt_sources){.own = &own_key, .issuer = name}, &keys, &why), ERR_INPUT);
    assert_int_equal(jwt_keys_new(&(struct jwt_sources){.own = &own_key, .audience = name}, &keys, &why), ERR_INPUT);
    assert_non_null(strstr(why.text, "RECLAIM_JWT_AUDIENCE"));
}

static enum err keys_of_file(const char *path, struct jwt_keys **ret, struct why *why)
{
    return jwt_keys_new(&(struct jwt_sources){.own = &own_key, .jwks_path = path}, ret, why);
}

static void a_file_that_cannot_be_read_is_named(void **state UNUSED)
{
    struct jwt_keys *keys;
    struct why why;
    assert_int_equal(keys_of_file("/nowhere/jwks.json", &keys, &why), ERR_SYSTEM);
    assert_string_equal(why.text,
                        "RECLAIM_JWKS_FILE: \"/nowhere/jwks.json\" cannot be read: No such file or directory");
    assert_int_equal(keys_of_file("/", &keys, &why), ERR_SYSTEM);
    static char large[140000];
    memset(large, ' ', sizeof large - 1);
    refused(large, "is larger than 128 KiB");
}

static void a_file_that_is_no_key_set_is_refused(void **state UNUSED)
{
    refused("", "is not a JSON Web Key Set");
    refused("[]", "is not a JSON Web Key Set: not an object");
    refused("{\"keys\":[],\"keys\":[]}", "a key stands there twice");
    refused("{}", "has no list \"keys\"");
    refused("{\"keys\":{}}", "has no list \"keys\"");
    refused("{\"keys\":[]}", "holds no key for RS256, ES256 or EdDSA, nor a secret for HS256");
    refused("{\"keys\":[7]}", "key 1 is not");
    refused("{\"keys\":[{}]}", "key 1 is not");
}

static void keys_for_other_purposes_are_passed_over(void **state UNUSED)
{
    EVP_PKEY *rsa = EVP_RSA_gen(2048), *ec = EVP_EC_gen("P-256");
    static char text[16384];
    const char *const others[] = {
        "{\"kty\":\"oct\",\"alg\":\"HS512\",\"k\":\"AAAA\"}",
        "{\"kty\":\"OKP\",\"crv\":\"X25519\",\"x\":\"AAAA\"}",
        "{\"kty\":\"EC\",\"crv\":\"P-384\",\"x\":\"AAAA\",\"y\":\"AAAA\"}",
    };
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        snprintf(text, sizeof text, "{\"keys\":[%s]}", others[i]);
        refused(text, "holds no key for RS256, ES256 or EdDSA, nor a secret for HS256");
    }
    const char *const purposes[] = {",\"use\":\"enc\"",   ",\"alg\":\"RSA-OAEP\"",
                                    ",\"alg\":\"PS256\"", ",\"alg\":\"HS256\"",
                                    ",\"use\":7",         ",\"alg\":null"};
    for (size_t i = 0; i < COUNT_OF(purposes); i++) {
        snprintf(text, sizeof text, "{\"keys\":[%s,%s]}", jwk(rsa, purposes[i]), jwk(ec, purposes[i]));
        refused(text, "holds no key for RS256, ES256 or EdDSA, nor a secret for HS256");
    }
    snprintf(text, sizeof text, "{\"keys\":[%s,%s,%s]}", others[0], others[1], jwk(ec, ""));
    struct jwt_keys *keys;
    struct why why;
    assert_int_equal(keys_of_text(text, &keys, &why), OK);
    assert_int_equal(jwt_keys_count(keys), 1);
    jwt_keys_free(keys);
    EVP_PKEY_free(rsa);
    EVP_PKEY_free(ec);
}

static void a_broken_or_weak_key_stops_the_start(void **state UNUSED)
{
    EVP_PKEY *weak = EVP_RSA_gen(1024), *rsa = EVP_RSA_gen(2048), *ec = EVP_EC_gen("P-256");
    static char text[16384];
    snprintf(text, sizeof text, "{\"keys\":[%s,%s]}", jwk(ec, ""), jwk(weak, ""));
    refused(text, "key 2 is not");

    char n[600];
    unsigned char bytes[400];
    memset(bytes, 0xff, sizeof bytes);
    base64url(bytes, 256, n, sizeof n);
    const char *const exponents[] = {"", "AQ", "Ag", "AQAA", "AQAB==", "AQABAQAB", "!"}; /* 1, 2, even, … */
    for (size_t i = 0; i < COUNT_OF(exponents); i++) {
        snprintf(text, sizeof text, "{\"keys\":[{\"kty\":\"RSA\",\"n\":\"%s\",\"e\":\"%s\"}]}", n, exponents[i]);
        refused(text, "key 1 is not");
    }
    bytes[0] = 0; /* a zero byte and 2040 bits */
    base64url(bytes, 256, n, sizeof n);
    snprintf(text, sizeof text, "{\"keys\":[{\"kty\":\"RSA\",\"n\":\"%s\",\"e\":\"AQAB\"}]}", n);
    refused(text, "key 1 is not");
    refused("{\"keys\":[{\"kty\":\"RSA\",\"e\":\"AQAB\"}]}", "key 1 is not");

    /* Not on the curve; coordinates too short; missing. */
    refused("{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","
            "\"y\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\"}]}",
            "key 1 is not");
    refused("{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"f83O\",\"y\":\"f83O\"}]}", "key 1 is not");
    refused("{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\"}]}", "key 1 is not");
    refused("{\"keys\":[{\"kty\":\"EC\"}]}", "key 1 is not");
    refused("{\"keys\":[{\"kty\":\"OKP\"}]}", "key 1 is not");
    refused("{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"AAAA\"}]}", "key 1 is not");
    /* Of small order: one signature would fit every text. */
    refused("{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"}]}",
            "key 1 is not");
    refused("{\"keys\":[{\"kty\":\"oct\",\"k\":\"AAAA\"}]}", "key 1 is not");
    refused("{\"keys\":[{\"kty\":\"oct\"}]}", "key 1 is not");

    char kid[400];
    snprintf(kid, sizeof kid, ",\"kid\":\"%0300d\"", 0);
    snprintf(text, sizeof text, "{\"keys\":[%s]}", jwk(rsa, kid));
    refused(text, "key 1 is not");
    snprintf(text, sizeof text, "{\"keys\":[%s]}", jwk(rsa, ",\"kid\":7"));
    refused(text, "key 1 is not");
    assert_int_equal(ERR_peek_error(), 0);
    EVP_PKEY_free(weak);
    EVP_PKEY_free(rsa);
    EVP_PKEY_free(ec);
}

static void a_set_has_32_keys_at_most(void **state UNUSED)
{
    EVP_PKEY *ec = EVP_EC_gen("P-256");
    static char text[16384];
    for (int count = 32; count <= 33; count++) {
        int at = snprintf(text, sizeof text, "{\"keys\":[");
        for (int i = 0; i < count; i++)
            at += snprintf(text + at, sizeof text - (size_t)at, "%s%s", i ? "," : "", jwk(ec, ""));
        snprintf(text + at, sizeof text - (size_t)at, "]}");
        if (count > 32) {
            refused(text, "holds more than 32 keys");
            continue;
        }
        struct jwt_keys *keys;
        struct why why;
        assert_int_equal(keys_of_text(text, &keys, &why), OK);
        jwt_keys_free(keys);
    }
    EVP_PKEY_free(ec);
}

static const char *eddsa(const char *header, const char *payload, const unsigned char *secret)
{
    char *token = token_buffer();
    unsigned char mark[crypto_sign_BYTES];
    size_t at = unsigned_token(header, payload, token, TOKEN_MAX);
    assert_int_equal(crypto_sign_detached(mark, NULL, (unsigned char *)token, at, secret), 0);
    return append_signature(token, at, TOKEN_MAX, mark, sizeof mark);
}

/* RFC 8037, appendix A: the key of its examples. */
static void an_ed25519_key_verifies_what_libsodium_signed(void **state UNUSED)
{
    static const char header[] = "{\"alg\":\"EdDSA\",\"kid\":\"d\"}", payload[] = "{\"exp\":1900000000}";
    unsigned char seed[crypto_sign_SEEDBYTES], public[crypto_sign_PUBLICKEYBYTES], secret[crypto_sign_SECRETKEYBYTES];
    char x[64], set[256];
    struct claims claims;
    struct jwt_keys *keys;
    struct why why;
    assert_int_equal(sodium_hex2bin(seed, sizeof seed,
                                    "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60", 64, NULL, NULL,
                                    NULL),
                     0);
    assert_int_equal(crypto_sign_seed_keypair(public, secret, seed), 0);
    base64url(public, sizeof public, x, sizeof x);
    assert_string_equal(x, "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo");
    snprintf(set, sizeof set, "{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"kid\":\"d\",\"x\":\"%s\"}]}", x);
    assert_int_equal(keys_of_text(set, &keys, &why), OK);
    const char *good = eddsa(header, payload, secret);
    assert_int_equal(jwt_verify(keys, str_of(good), 0, &claims), JWT_FINE);
    char changed[512];
    snprintf(changed, sizeof changed, "%s", good);
    char *last = changed + strlen(changed) - 10;
    *last = *last == 'A' ? 'B' : 'A';
    assert_int_equal(jwt_verify(keys, str_of(changed), 0, &claims), JWT_SIGNATURE);
    assert_int_equal(jwt_verify(keys, str_of(eddsa("{\"alg\":\"EdDSA\",\"kid\":\"e\"}", payload, secret)), 0, &claims),
                     JWT_UNKNOWN_KEY);
    assert_int_equal(
        jwt_verify(keys, str_of(hs256_with("{\"alg\":\"HS256\",\"kid\":\"d\"}", payload, public, 32)), 0, &claims),
        JWT_ALGORITHM);
    jwt_keys_free(keys);
}

static enum err keys_read_from_url(const char *text, struct jwt_keys **ret, struct why *why)
{
    return jwt_keys_new(&(struct jwt_sources){.own = &own_key, .jwks_read = str_of(text)}, ret, why);
}

static void a_secret_is_taken_from_a_file_and_never_from_a_url(void **state UNUSED)
{
    static const char set[] =
        "{\"keys\":[{\"kty\":\"oct\",\"kid\":\"o\",\"k\":\"YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE\"}]}";
    static const char bytes[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", payload[] = "{\"exp\":1900000000}";
    struct claims claims;
    struct jwt_keys *keys;
    struct why why = {""};
    assert_int_equal(keys_of_text(set, &keys, &why), OK);
    assert_int_equal(
        jwt_verify(keys, str_of(hs256_with("{\"alg\":\"HS256\",\"kid\":\"o\"}", payload, bytes, 32)), 0, &claims),
        JWT_FINE);
    assert_int_equal(jwt_verify(keys, str_of(hs256_with("{\"alg\":\"HS256\"}", payload, bytes, 32)), 0, &claims),
                     JWT_FINE);
    assert_int_not_equal(
        jwt_verify(keys, str_of(hs256_with("{\"alg\":\"HS256\",\"kid\":\"p\"}", payload, bytes, 32)), 0, &claims),
        JWT_FINE);
    jwt_keys_free(keys);
    assert_int_equal(keys_read_from_url(set, &keys, &why), ERR_INPUT);
    assert_string_equal(why.text, "RECLAIM_JWKS_URL holds no key for RS256, ES256 or EdDSA");
}

static void a_useless_key_of_a_url_does_not_spoil_the_others(void **state UNUSED)
{
    EVP_PKEY *ec = EVP_EC_gen("P-256");
    char set[2048];
    struct claims claims;
    struct jwt_keys *keys;
    struct why why = {""};
    snprintf(set, sizeof set, "{\"keys\":[7,{},{\"kty\":\"EC\"},%s]}", jwk(ec, ",\"kid\":\"e\""));
    assert_int_equal(keys_read_from_url(set, &keys, &why), OK);
    assert_int_equal(jwt_verify(keys,
                                str_of(es256("{\"alg\":\"ES256\",\"kid\":\"e\"}", "{\"exp\":1900000000}", ec, true)), 0,
                                &claims),
                     JWT_FINE);
    jwt_keys_free(keys);
    EVP_PKEY_free(ec);
}

/* Several threads, one set of keys. */

enum { THREADS = 4, ROUNDS = 50 };

struct crowd {
    struct jwt_keys *secret, *public;
    char tokens[3][4096];
    atomic_int good;
};

static void *verify_often(void *context)
{
    struct crowd *crowd = context;
    for (int i = 0; i < ROUNDS; i++) {
        for (int t = 0; t < 3; t++) {
            struct claims claims;
            const struct jwt_keys *keys = t ? crowd->public : crowd->secret;
            if (jwt_verify(keys, str_of(crowd->tokens[t]), 0, &claims) == JWT_FINE)
                crowd->good++;
        }
    }
    return NULL;
}

static void threads_share_keys(void **state UNUSED)
{
    static struct crowd crowd;
    EVP_PKEY *rsa = EVP_RSA_gen(2048), *ec = EVP_EC_gen("P-256");
    struct why why;
    assert_int_equal(keys_of_secret(SECRET, &crowd.secret, &why), OK);
    assert_int_equal(keys_of_set(jwk(rsa, ""), jwk(ec, ""), &crowd.public, &why), OK);
    snprintf(crowd.tokens[0], sizeof crowd.tokens[0], "%s", hs256("{\"exp\":1900000000}"));
    snprintf(crowd.tokens[1], sizeof crowd.tokens[0], "%s", rs256("{\"alg\":\"RS256\"}", "{\"exp\":1900000000}", rsa));
    snprintf(crowd.tokens[2], sizeof crowd.tokens[0], "%s",
             es256("{\"alg\":\"ES256\"}", "{\"exp\":1900000000}", ec, true));
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, verify_often, &crowd), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(crowd.good, THREADS * ROUNDS * 3);
    jwt_keys_free(crowd.secret);
    jwt_keys_free(crowd.public);
    EVP_PKEY_free(rsa);
    EVP_PKEY_free(ec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_secret_has_32_bytes_at_least),
        cmocka_unit_test(a_secret_and_a_key_set_work_side_by_side),
        cmocka_unit_test(a_name_that_is_too_long_is_refused),
        cmocka_unit_test(a_file_that_cannot_be_read_is_named),
        cmocka_unit_test(a_file_that_is_no_key_set_is_refused),
        cmocka_unit_test(keys_for_other_purposes_are_passed_over),
        cmocka_unit_test(a_broken_or_weak_key_stops_the_start),
        cmocka_unit_test(a_set_has_32_keys_at_most),
        cmocka_unit_test(an_ed25519_key_verifies_what_libsodium_signed),
        cmocka_unit_test(a_secret_is_taken_from_a_file_and_never_from_a_url),
        cmocka_unit_test(a_useless_key_of_a_url_does_not_spoil_the_others),
        cmocka_unit_test(threads_share_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
