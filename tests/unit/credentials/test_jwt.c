#include "credentials/jwt.h"

#include "forge.h"

#define NOW_S INT64_C(1800000000)
#define NOW_US (NOW_S * 1000000)
#define USER "11111111-2222-4333-8444-5555aaaabbbb"
#define HS "{\"alg\":\"HS256\"}"
#define OWN ",\"iss\":\"reclaim\",\"aud\":\"reclaim\"" /* issuer and audience of Reclaim's own tokens */

static struct jwt_keys *secret_keys, *public_keys;
static EVP_PKEY *rsa, *other_rsa, *ec, *other_ec;

/* A valid payload that expires in an hour. */
static const char *payload_with(const char *more)
{
    static char text[1024];
    snprintf(text, sizeof text, "{\"exp\":%lld%s}", (long long)NOW_S + 3600, more);
    return text;
}

static enum jwt_fault verify(const struct jwt_keys *keys, const char *token, struct claims *ret)
{
    /* A copy without a terminator, so that the sanitizer detects reads beyond it. */
    size_t len = strlen(token);
    char *copy = malloc(len ? len : 1);
    assert_non_null(copy);
    memcpy(copy, token, len);
    enum jwt_fault fault = jwt_verify(keys, (struct str){copy, len}, NOW_US, ret);
    free(copy);
    return fault;
}

static void check(const struct jwt_keys *keys, const char *token, enum jwt_fault expected)
{
    struct claims claims = {.sub = "untouched", .expires_us = 7};
    assert_int_equal(verify(keys, token, &claims), expected);
    if (expected) {
        assert_string_equal(claims.sub, "untouched");
        assert_int_equal(claims.expires_us, 7);
    }
}

static struct claims claims_of(const char *payload)
{
    struct claims claims;
    assert_int_equal(verify(secret_keys, hs256(payload), &claims), JWT_FINE);
    return claims;
}

static void a_token_tells_its_subject_and_its_end(void **state UNUSED)
{
    struct claims c = claims_of(payload_with(",\"sub\":\"" USER "\",\"role\":\"authenticated\""));
    assert_string_equal(c.sub, USER);
    assert_false(c.admin);
    assert_int_equal(c.expires_us, NOW_US + INT64_C(3600000000));
    c = claims_of(payload_with(",\"sub\":\"11111111-2222-4333-8444-5555AAAABBBB\""));
    assert_string_equal(c.sub, USER);
}

static void what_is_no_uuid_is_no_subject(void **state UNUSED)
{
    const char *const subjects[] = {"",           ",\"sub\":\"\"", ",\"sub\":\"admin\"",
                                    ",\"sub\":7", ",\"sub\":null", (",\"sub\":\"" USER " \"")};
    for (size_t i = 0; i < COUNT_OF(subjects); i++)
        assert_string_equal(claims_of(payload_with(subjects[i])).sub, "");
}

static void an_admin_is_who_the_role_or_the_app_metadata_says(void **state UNUSED)
{
    const struct {
        const char *more;
        bool admin;
    } cases[] = {
        {",\"role\":\"service_role\"", true},
        {",\"role\":\"authenticated\",\"app_metadata\":{\"role\":\"admin\"}", true},
        {",\"role\":\"admin\"", false},
        {",\"role\":\"SERVICE_ROLE\"", false},
        {",\"role\":[\"service_role\"]", false},
        {",\"app_metadata\":{\"role\":\"service_role\"}", false},
        {",\"app_metadata\":\"admin\"", false},
        {",\"app_metadata\":{\"roles\":[\"admin\"]}", false},
        /* Users can set these themselves. */
        {",\"user_metadata\":{\"role\":\"admin\"}", false},
        {",\"role\":\"anon\"", false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_int_equal(claims_of(payload_with(cases[i].more)).admin, cases[i].admin);
}

static void times_have_thirty_seconds_of_leeway(void **state UNUSED)
{
    const struct {
        const char *claim;
        long long seconds; /* from now */
        enum jwt_fault fault;
    } cases[] = {
        {"exp", 1, JWT_FINE},         {"exp", -29, JWT_FINE},      {"exp", -30, JWT_EXPIRED},
        {"exp", -86400, JWT_EXPIRED}, {"nbf", -1, JWT_FINE},       {"nbf", 30, JWT_FINE},
        {"nbf", 31, JWT_NOT_YET},     {"nbf", 86400, JWT_NOT_YET}, {"exp", -NOW_S, JWT_EXPIRED},
        {"nbf", -NOW_S, JWT_FINE},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char payload[256];
        long long at = NOW_S + cases[i].seconds;
        if (strcmp(cases[i].claim, "exp") == 0)
            snprintf(payload, sizeof payload, "{\"exp\":%lld}", at);
        else
            snprintf(payload, sizeof payload, "{\"exp\":%lld,\"nbf\":%lld}", (long long)NOW_S + 3600, at);
        check(secret_keys, hs256(payload), cases[i].fault);
    }
}

static void an_end_that_makes_no_sense_is_malformed(void **state UNUSED)
{
    const char *const ends[] = {
        "",
        "\"iat\":1800000000",
        "\"exp\":\"1900000000\"",
        "\"exp\":null",
        "\"exp\":true",
        "\"exp\":[1900000000]",
        "\"exp\":-1",
        "\"exp\":-0.5",
        "\"exp\":9223372036854775807",
        "\"exp\":9223372036854775808",
        "\"exp\":253402300800",
        "\"exp\":1e300",
        "\"exp\":1e999",
        "\"exp\":1900000000,\"nbf\":\"1\"",
        "\"exp\":1900000000,\"nbf\":1e300",
        "\"exp\":1900000000,\"nbf\":-1",
    };
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        char payload[256];
        snprintf(payload, sizeof payload, "{%s}", ends[i]);
        check(secret_keys, hs256(payload), JWT_MALFORMED);
    }
    /* RFC 7519 allows fractions. */
    assert_int_equal(claims_of("{\"exp\":1900000000.5}").expires_us, INT64_C(1900000000500000));
    assert_int_equal(claims_of("{\"exp\":1.9e9}").expires_us, INT64_C(1900000000000000));
    assert_int_equal(claims_of("{\"exp\":253402300799}").expires_us, INT64_C(253402300799000000));
    check(secret_keys, hs256("{\"exp\":1799999000.25}"), JWT_EXPIRED);
}

static void a_payload_that_json_readers_could_read_differently_is_malformed(void **state UNUSED)
{
    const char *const payloads[] = {
        ("{\"exp\":1900000000,\"sub\":\"" USER "\",\"sub\":\"x\"}"),
        "{\"exp\":1900000000,\"app_metadata\":{\"role\":\"user\",\"role\":\"admin\"}}",
        "{\"exp\":1900000000} ,",
        "[{\"exp\":1900000000}]",
        "\"exp\"",
        "{\"exp\":1900000000,\"sub\":\"\\u0000\"}",
        "{\"exp\":1900000000,\"x\":\"\xff\"}",
        "{\"exp\":1900000000",
    };
    for (size_t i = 0; i < COUNT_OF(payloads); i++)
        check(secret_keys, hs256(payloads[i]), JWT_MALFORMED);
}

static void the_wrong_secret_or_a_changed_token_is_a_wrong_signature(void **state UNUSED)
{
    const char *payload = payload_with("");
    check(secret_keys, hs256_with(HS, payload, "another secret, just as long as it is", 37), JWT_SIGNATURE);
    check(secret_keys, hs256_with(HS, payload, "", 0), JWT_SIGNATURE);
    /* The signature of another payload. */
    char forged[1024];
    size_t at = unsigned_token(HS, payload_with(",\"role\":\"service_role\""), forged, sizeof forged);
    snprintf(forged + at, sizeof forged - at, "%s", strrchr(hs256(payload_with("")), '.'));
    check(secret_keys, forged, JWT_SIGNATURE);

    /* Half a signature, one byte, none. */
    const char *whole = hs256(payload);
    size_t end = (size_t)(strrchr(whole, '.') - whole) + 1;
    for (size_t keep = 0; keep < 42; keep += 4) {
        snprintf(forged, sizeof forged, "%.*s", (int)(end + keep), whole);
        check(secret_keys, forged, JWT_SIGNATURE);
    }
}

static void only_the_algorithm_of_a_key_is_accepted(void **state UNUSED)
{
    const char *payload = payload_with("");
    const char *const none[] = {"none",  "None",  "nOnE",  "NONE",  "",      "HS384", "HS512",
                                "RS512", "PS256", "ES384", "EdDSA", "hs256", "HS256 "};
    for (size_t i = 0; i < COUNT_OF(none); i++) {
        char header[64], token[1024];
        snprintf(header, sizeof header, "{\"alg\":\"%s\"}", none[i]);
        check(secret_keys, hs256_with(header, payload, SECRET, strlen(SECRET)), JWT_ALGORITHM);
        size_t at = unsigned_token(header, payload, token, sizeof token);
        snprintf(token + at, sizeof token - at, ".");
        check(secret_keys, token, JWT_ALGORITHM);
        check(public_keys, token, JWT_ALGORITHM);
    }
    check(secret_keys, rs256("{\"alg\":\"RS256\",\"kid\":\"r\"}", payload, rsa), JWT_UNKNOWN_KEY);
    check(secret_keys, es256("{\"alg\":\"ES256\",\"kid\":\"e\"}", payload, ec, true), JWT_UNKNOWN_KEY);
    check(public_keys, hs256(payload), JWT_ALGORITHM);
}

/* The algorithm confusion attack: HS256 with the public key as secret. */
static void a_public_key_never_serves_as_a_secret(void **state UNUSED)
{
    unsigned char der[1024], *at = der;
    int der_len = i2d_PUBKEY(rsa, &at);
    BIO *memory = BIO_new(BIO_s_mem());
    assert_int_equal(PEM_write_bio_PUBKEY(memory, rsa), 1);
    char *pem;
    long pem_len = BIO_get_mem_data(memory, &pem);
    const char *payload = payload_with(",\"role\":\"service_role\"");
    check(public_keys, hs256_with(HS, payload, der, (size_t)der_len), JWT_ALGORITHM);
    check(public_keys, hs256_with(HS, payload, pem, (size_t)pem_len), JWT_ALGORITHM);
    check(public_keys, hs256_with("{\"alg\":\"HS256\",\"kid\":\"r\"}", payload, pem, (size_t)pem_len), JWT_ALGORITHM);
    check(public_keys, hs256_with("{\"alg\":\"RS256\",\"kid\":\"r\"}", payload, pem, (size_t)pem_len), JWT_SIGNATURE);
    check(public_keys, hs256_with("{\"alg\":\"HS256\"}", payload, "", 0), JWT_ALGORITHM);
    BIO_free(memory);
}

static void public_keys_verify_what_their_private_halves_signed(void **state UNUSED)
{
    const char *payload = payload_with("");
    check(public_keys, rs256("{\"alg\":\"RS256\",\"kid\":\"r\"}", payload, rsa), JWT_FINE);
    check(public_keys, es256("{\"alg\":\"ES256\",\"kid\":\"e\"}", payload, ec, true), JWT_FINE);
    /* Without a "kid" each key of the algorithm is tried. */
    check(public_keys, rs256("{\"alg\":\"RS256\"}", payload, rsa), JWT_FINE);
    check(public_keys, es256("{\"alg\":\"ES256\"}", payload, ec, true), JWT_FINE);
    check(public_keys, rs256("{\"alg\":\"RS256\"}", payload, other_rsa), JWT_SIGNATURE);
    check(public_keys, es256("{\"alg\":\"ES256\"}", payload, other_ec, true), JWT_SIGNATURE);
    check(public_keys, rs256("{\"alg\":\"RS256\",\"kid\":\"r\"}", payload, other_rsa), JWT_SIGNATURE);
    check(public_keys, es256("{\"alg\":\"ES256\",\"kid\":\"e\"}", payload, other_ec, true), JWT_SIGNATURE);
    /* The "kid" of a key of the other algorithm, and the other algorithm's signature. */
    check(public_keys, rs256("{\"alg\":\"RS256\",\"kid\":\"e\"}", payload, rsa), JWT_UNKNOWN_KEY);
    check(public_keys, es256("{\"alg\":\"RS256\",\"kid\":\"r\"}", payload, ec, true), JWT_SIGNATURE);
    check(public_keys, rs256("{\"alg\":\"ES256\",\"kid\":\"e\"}", payload, rsa), JWT_SIGNATURE);
}

static void a_key_that_is_named_must_be_ours(void **state UNUSED)
{
    const char *payload = payload_with("");
    const char *const kids[] = {"x", "", "R", "r ", "rr"};
    for (size_t i = 0; i < COUNT_OF(kids); i++) {
        char header[64];
        snprintf(header, sizeof header, "{\"alg\":\"RS256\",\"kid\":\"%s\"}", kids[i]);
        check(public_keys, rs256(header, payload, rsa), JWT_UNKNOWN_KEY);
    }
    char header[512], kid[301];
    memset(kid, 'k', sizeof kid - 1);
    kid[sizeof kid - 1] = '\0';
    snprintf(header, sizeof header, "{\"alg\":\"RS256\",\"kid\":\"%s\"}", kid);
    check(public_keys, rs256(header, payload, rsa), JWT_UNKNOWN_KEY);
    check(public_keys, rs256("{\"alg\":\"RS256\",\"kid\":7}", payload, rsa), JWT_MALFORMED);
    /* Supabase sets "kid" in HS256 tokens too; it is ignored. */
    check(secret_keys, hs256_with("{\"alg\":\"HS256\",\"kid\":\"any\"}", payload, SECRET, strlen(SECRET)), JWT_FINE);
}

static void a_key_without_a_name_is_not_the_one_that_is_named(void **state UNUSED)
{
    struct jwt_keys *keys;
    struct why why;
    assert_int_equal(keys_of_set(jwk(rsa, ""), NULL, &keys, &why), OK);
    check(keys, rs256("{\"alg\":\"RS256\"}", payload_with(""), rsa), JWT_FINE);
    check(keys, rs256("{\"alg\":\"RS256\",\"kid\":\"\"}", payload_with(""), rsa), JWT_UNKNOWN_KEY);
    jwt_keys_free(keys);

    /* During key rotation both keys may have the same "kid". */
    assert_int_equal(keys_of_set(jwk(other_rsa, ",\"kid\":\"k\""), jwk(rsa, ",\"kid\":\"k\""), &keys, &why), OK);
    check(keys, rs256("{\"alg\":\"RS256\",\"kid\":\"k\"}", payload_with(""), rsa), JWT_FINE);
    check(keys, es256("{\"alg\":\"ES256\",\"kid\":\"k\"}", payload_with(""), ec, true), JWT_UNKNOWN_KEY);
    jwt_keys_free(keys);
}

static void an_es256_signature_is_two_numbers_of_32_bytes(void **state UNUSED)
{
    static const char header[] = "{\"alg\":\"ES256\",\"kid\":\"e\"}";
    const char *payload = payload_with("");
    check(public_keys, es256(header, payload, ec, false), JWT_SIGNATURE); /* DER */
    unsigned char bytes[129] = {0};
    for (size_t len = 0; len <= sizeof bytes; len++) {
        char token[1024];
        size_t at = unsigned_token(header, payload, token, sizeof token);
        check(public_keys, append_signature(token, at, sizeof token, bytes, len), JWT_SIGNATURE);
    }
    memset(bytes, 0xff, sizeof bytes); /* larger than the order of the group */
    char token[1024];
    size_t at = unsigned_token(header, payload, token, sizeof token);
    check(public_keys, append_signature(token, at, sizeof token, bytes, 64), JWT_SIGNATURE);
    assert_int_equal(ERR_peek_error(), 0); /* the thread's error queue is empty */
}

static void what_is_not_a_token_is_malformed(void **state UNUSED)
{
    char token[2048];
    const char *good = hs256(payload_with(""));
    const char *const texts[] = {"",      ".",    "..",   "...",          "a",           "a.b",
                                 "a.b.c", "a..c", ".b.c", "Bearer x.y.z", "e30.e30.e30", "bnVsbA.e30.e30"};
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        check(secret_keys, texts[i], JWT_MALFORMED);
    assert_int_equal(jwt_verify(secret_keys, (struct str){NULL, 0}, NOW_US, &(struct claims){.admin = false}),
                     JWT_MALFORMED);
    const char *const around[] = {" %s", "%s ", "%s\n", "%s=", "%s.", "%s.e30", ".%s"};
    for (size_t i = 0; i < COUNT_OF(around); i++) {
        (void)snprintf(token, sizeof token, around[i], good);
        check(secret_keys, token, JWT_MALFORMED);
    }
}

/* A valid token with any character replaced by one outside of the alphabet is refused. */
static void base64_is_read_strictly(void **state UNUSED)
{
    char token[2048], *at = token;
    snprintf(token, sizeof token, "%s", hs256(payload_with("")));
    for (; *at; at++) {
        char was = *at;
        for (const char *wrong = "+/= \n\t!\x80"; was != '.' && *wrong; wrong++) {
            *at = *wrong;
            struct claims claims;
            enum jwt_fault fault = verify(secret_keys, token, &claims);
            assert_true(fault == JWT_MALFORMED || fault == JWT_SIGNATURE);
        }
        *at = was;
    }
    check(secret_keys, token, JWT_FINE);
    /* The last character of 32 encoded bytes has two unused bits, which must be 0. */
    assert_non_null(strchr("AEIMQUYcgkosw048", at[-1]));
    at[-1]++;
    check(secret_keys, token, JWT_MALFORMED);
}

static void a_header_that_asks_for_more_than_we_know_is_refused(void **state UNUSED)
{
    const char *const headers[] = {
        "{}",
        "{\"typ\":\"JWT\"}",
        "{\"alg\":256}",
        "{\"alg\":null}",
        "{\"alg\":[\"HS256\"]}",
        "{\"alg\":\"none\",\"alg\":\"HS256\"}",
        "{\"alg\":\"HS256\",\"crit\":[\"b64\"],\"b64\":false}",
        "{\"alg\":\"HS256\",\"crit\":[]}",
        "[]",
        "HS256",
    };
    for (size_t i = 0; i < COUNT_OF(headers); i++)
        check(secret_keys, hs256_with(headers[i], payload_with(""), SECRET, strlen(SECRET)), JWT_MALFORMED);
}

static void tokens_of_great_length_are_refused(void **state UNUSED)
{
    static char payload[9000], header[2000];
    for (size_t size = 5000; size <= 8500; size += 500) {
        int at = snprintf(payload, sizeof payload, "{\"exp\":1900000000,\"x\":\"");
        memset(payload + at, 'x', size - (size_t)at);
        snprintf(payload + size, sizeof payload - size, "\"}");
        const char *token = hs256(payload);
        check(secret_keys, token, strlen(token) <= JWT_MAX ? JWT_FINE : JWT_MALFORMED);
    }
    static char nothing[9001];
    memset(nothing, 'a', 9000);
    check(secret_keys, nothing, JWT_MALFORMED);
    memset(nothing, '.', 9000);
    check(secret_keys, nothing, JWT_MALFORMED);

    int at = snprintf(header, sizeof header, "{\"alg\":\"HS256\",\"x\":\"");
    memset(header + at, 'x', 1500);
    snprintf(header + at + 1500, sizeof header - 1500 - (size_t)at, "\"}");
    check(secret_keys, hs256_with(header, payload_with(""), SECRET, strlen(SECRET)), JWT_MALFORMED);

    /* A signature longer than any key's. */
    static unsigned char mark[2000];
    char *token = token_buffer();
    size_t end = unsigned_token(HS, payload_with(""), token, TOKEN_MAX);
    check(secret_keys, append_signature(token, end, TOKEN_MAX, mark, sizeof mark), JWT_MALFORMED);
}

static void without_other_keys_only_reclaims_own_tokens_are_good(void **state UNUSED)
{
    struct jwt_keys *keys;
    struct why why;
    assert_int_equal(keys_of_secret(NULL, &keys, &why), OK);
    assert_int_equal(jwt_keys_count(keys), 0);
    check(keys, own_hs256(payload_with(OWN)), JWT_FINE);
    check(keys, hs256(payload_with("")), JWT_ALGORITHM);
    check(keys, rs256("{\"alg\":\"RS256\"}", payload_with(""), rsa), JWT_ALGORITHM);
    jwt_keys_free(keys);
    jwt_keys_free(NULL);
}

/* RFC 7515, appendices A.2 and A.3. */
static void the_standards_own_tokens_are_good(void **state UNUSED)
{
#define JOE "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
    static const char set[] =
        "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","
        "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\"},"
        "{\"kty\":\"RSA\",\"n\":\"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-"
        "4qPCJrcS2mJPMEzP1"
        "Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-"
        "bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-"
        "KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_"
        "h9iaGNj8q2et"
        "hFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ\",\"e\":\"AQAB\"}]}";
    static const char *const tokens[] = {
        "eyJhbGciOiJFUzI1NiJ9." JOE
        ".DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
        "eyJhbGciOiJSUzI1NiJ9." JOE
        ".cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUA"
        "r7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--"
        "x"
        "i12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_"
        "IoypG"
        "lUPQGe77Rw"};
    struct jwt_keys *keys;
    struct why why;
    assert_int_equal(keys_of_text(set, &keys, &why), OK);
    for (size_t i = 0; i < COUNT_OF(tokens); i++) {
        struct claims c;
        assert_int_equal(jwt_verify(keys, str_of(tokens[i]), INT64_C(1300819300000000), &c), JWT_FINE);
        assert_int_equal(c.expires_us, INT64_C(1300819380000000));
        assert_int_equal(jwt_verify(keys, str_of(tokens[i]), NOW_US, &c), JWT_EXPIRED);
    }
    jwt_keys_free(keys);
}

static void only_reclaims_key_vouches_for_the_issuer_reclaim(void **state UNUSED)
{
    static const char rs[] = "{\"alg\":\"RS256\",\"kid\":\"r\"}", es[] = "{\"alg\":\"ES256\",\"kid\":\"e\"}";
    check(secret_keys, own_hs256(payload_with(OWN)), JWT_FINE);
    check(public_keys, own_hs256(payload_with(OWN)), JWT_FINE);
    check(secret_keys, hs256(payload_with(OWN)), JWT_SIGNATURE);
    check(public_keys, rs256(rs, payload_with(OWN), rsa), JWT_ALGORITHM);
    check(public_keys, es256(es, payload_with(OWN), ec, true), JWT_ALGORITHM);
    check(secret_keys, hs256_with("{\"alg\":\"none\"}", payload_with(OWN), own_key.bytes, 32), JWT_ALGORITHM);
}

static void reclaims_key_vouches_for_no_other_issuer(void **state UNUSED)
{
    const char *const others[] = {"",
                                  ",\"iss\":\"https://project.example.com/auth/v1\"",
                                  ",\"iss\":\"Reclaim\"",
                                  ",\"iss\":\"reclaim \"",
                                  ",\"iss\":[\"reclaim\"]",
                                  ",\"iss\":null",
                                  ",\"aud\":\"reclaim\""};
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        check(secret_keys, own_hs256(payload_with(others[i])), JWT_SIGNATURE);
        check(public_keys, own_hs256(payload_with(others[i])), JWT_ALGORITHM);
        check(secret_keys, hs256(payload_with(others[i])), JWT_FINE);
    }
    check(secret_keys, own_hs256(payload_with(",\"iss\":\"x\",\"iss\":\"reclaim\"")), JWT_MALFORMED);
}

static void reclaims_own_tokens_are_for_reclaim(void **state UNUSED)
{
    const char *const audiences[] = {"", ",\"aud\":\"authenticated\"", ",\"aud\":[]", ",\"aud\":[7,null]",
                                     ",\"aud\":{}"};
    for (size_t i = 0; i < COUNT_OF(audiences); i++) {
        char more[128];
        snprintf(more, sizeof more, ",\"iss\":\"reclaim\"%s", audiences[i]);
        check(secret_keys, own_hs256(payload_with(more)), JWT_AUDIENCE);
    }
    check(secret_keys, own_hs256("{\"exp\":1,\"iss\":\"reclaim\",\"aud\":\"reclaim\"}"), JWT_EXPIRED);
}

static void other_issuers_tokens_say_what_the_settings_ask_for(void **state UNUSED)
{
    struct jwt_keys *keys;
    struct why why;
    const struct {
        const char *more;
        enum jwt_fault fault;
    } cases[] = {
        {",\"iss\":\"us\",\"aud\":\"app\"", JWT_FINE},
        {",\"iss\":\"us\",\"aud\":[\"x\",\"app\"]", JWT_FINE},
        {",\"iss\":\"us\",\"aud\":[\"x\"]", JWT_AUDIENCE},
        {",\"iss\":\"us\",\"aud\":\"application\"", JWT_AUDIENCE},
        {",\"iss\":\"us\"", JWT_AUDIENCE},
        {",\"iss\":\"them\",\"aud\":\"app\"", JWT_ISSUER},
        {",\"iss\":[\"us\"],\"aud\":\"app\"", JWT_ISSUER},
        {",\"aud\":\"app\"", JWT_ISSUER},
        {OWN, JWT_SIGNATURE},
    };
    const struct jwt_sources from = {.own = &own_key, .secret = SECRET, .issuer = "us", .audience = "app"};
    assert_int_equal(jwt_keys_new(&from, &keys, &why), OK);
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        check(keys, hs256(payload_with(cases[i].more)), cases[i].fault);
    check(keys, own_hs256(payload_with(OWN)), JWT_FINE);
    jwt_keys_free(keys);
}

static void a_token_of_ours_is_read_back(void **state UNUSED)
{
    AUTO(buf) struct buf token = buf_new(JWT_MAX);
    const struct jwt_grant grant = {"authenticated", USER, NULL, NOW_US, NOW_US + INT64_C(3600999999)};
    struct claims c;
    assert_int_equal(jwt_sign(&own_key, &grant, &token), OK);
    assert_int_equal(verify(public_keys, buf_str(&token).at, &c), JWT_FINE);
    assert_int_equal(verify(secret_keys, buf_str(&token).at, &c), JWT_FINE);
    assert_string_equal(c.sub, USER);
    assert_false(c.admin);
    assert_int_equal(c.expires_us, NOW_US + INT64_C(3600000000));

    const struct jwt_grant admin = {"service_role", NULL, NULL, NOW_US, NOW_US + 1000000};
    buf_clear(&token);
    assert_int_equal(jwt_sign(&own_key, &admin, &token), OK);
    assert_int_equal(verify(secret_keys, buf_str(&token).at, &c), JWT_FINE);
    assert_string_equal(c.sub, "");
    assert_true(c.admin);
}

static void what_cannot_be_signed_is_said(void **state UNUSED)
{
    AUTO(buf) struct buf token = buf_new(JWT_MAX);
    struct jwt_grant grant = {"authenticated", USER, NULL, NOW_US, NOW_US + 1000000};
    char small[64], role[600];
    struct buf full = buf_over(small, sizeof small);
    assert_int_equal(jwt_sign(&own_key, &grant, &full), ERR_MEMORY);
    memset(role, 'r', sizeof role - 1);
    role[sizeof role - 1] = '\0';
    grant.role = role;
    assert_int_equal(jwt_sign(&own_key, &grant, &token), ERR_MEMORY);
    assert_int_equal(token.len, 0);
}

static void every_fault_has_a_sentence(void **state UNUSED)
{
    for (int fault = JWT_FINE; fault <= JWT_AUDIENCE; fault++)
        for (int other = JWT_FINE; other < fault; other++)
            assert_string_not_equal(jwt_fault_text((enum jwt_fault)fault), jwt_fault_text((enum jwt_fault)other));
    assert_non_null(jwt_fault_text((enum jwt_fault)99));
}

static int make_keys(void **state UNUSED)
{
    struct why why;
    rsa = EVP_RSA_gen(2048);
    other_rsa = EVP_RSA_gen(2048);
    ec = EVP_EC_gen("P-256");
    other_ec = EVP_EC_gen("P-256");
    return rsa && other_rsa && ec && other_ec && !keys_of_secret(SECRET, &secret_keys, &why) &&
                   !keys_of_set(jwk(rsa, ",\"kid\":\"r\",\"alg\":\"RS256\",\"use\":\"sig\""), jwk(ec, ",\"kid\":\"e\""),
                                &public_keys, &why)
               ? 0
               : -1;
}

static int drop_keys(void **state UNUSED)
{
    jwt_keys_free(secret_keys);
    jwt_keys_free(public_keys);
    EVP_PKEY_free(rsa);
    EVP_PKEY_free(other_rsa);
    EVP_PKEY_free(ec);
    EVP_PKEY_free(other_ec);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_tells_its_subject_and_its_end),
        cmocka_unit_test(what_is_no_uuid_is_no_subject),
        cmocka_unit_test(an_admin_is_who_the_role_or_the_app_metadata_says),
        cmocka_unit_test(times_have_thirty_seconds_of_leeway),
        cmocka_unit_test(an_end_that_makes_no_sense_is_malformed),
        cmocka_unit_test(a_payload_that_json_readers_could_read_differently_is_malformed),
        cmocka_unit_test(the_wrong_secret_or_a_changed_token_is_a_wrong_signature),
        cmocka_unit_test(only_the_algorithm_of_a_key_is_accepted),
        cmocka_unit_test(a_public_key_never_serves_as_a_secret),
        cmocka_unit_test(public_keys_verify_what_their_private_halves_signed),
        cmocka_unit_test(a_key_that_is_named_must_be_ours),
        cmocka_unit_test(a_key_without_a_name_is_not_the_one_that_is_named),
        cmocka_unit_test(an_es256_signature_is_two_numbers_of_32_bytes),
        cmocka_unit_test(what_is_not_a_token_is_malformed),
        cmocka_unit_test(base64_is_read_strictly),
        cmocka_unit_test(a_header_that_asks_for_more_than_we_know_is_refused),
        cmocka_unit_test(tokens_of_great_length_are_refused),
        cmocka_unit_test(without_other_keys_only_reclaims_own_tokens_are_good),
        cmocka_unit_test(the_standards_own_tokens_are_good),
        cmocka_unit_test(only_reclaims_key_vouches_for_the_issuer_reclaim),
        cmocka_unit_test(reclaims_key_vouches_for_no_other_issuer),
        cmocka_unit_test(reclaims_own_tokens_are_for_reclaim),
        cmocka_unit_test(other_issuers_tokens_say_what_the_settings_ask_for),
        cmocka_unit_test(a_token_of_ours_is_read_back),
        cmocka_unit_test(what_cannot_be_signed_is_said),
        cmocka_unit_test(every_fault_has_a_sentence),
    };
    return cmocka_run_group_tests(tests, make_keys, drop_keys);
}
