/* Creates valid and invalid tokens and key sets, with code independent of the program's. */
#ifndef TESTS_UNIT_AUTH_FORGE_H
#define TESTS_UNIT_AUTH_FORGE_H

#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/unit.h"
#include "credentials/jwt.h"

#define SECRET "a secret for tests alone, of some length"

/* The key of Reclaim's own tokens. */
static const struct digest own_key = {{"a key for tests alone: 32 bytes."}};

static inline size_t base64url(const void *bytes, size_t len, char *into, size_t size)
{
    assert_true(sodium_base64_ENCODED_LEN(len, sodium_base64_VARIANT_URLSAFE_NO_PADDING) <= size);
    sodium_bin2base64(into, size, bytes, len, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    return strlen(into);
}

/* "header.payload", without the signature. */
static inline size_t unsigned_token(const char *header, const char *payload, char *into, size_t size)
{
    size_t at = base64url(header, strlen(header), into, size);
    into[at++] = '.';
    return at + base64url(payload, strlen(payload), into + at, size - at);
}

static inline const char *append_signature(char *token, size_t at, size_t size, const void *bytes, size_t len)
{
    token[at++] = '.';
    base64url(bytes, len, token + at, size - at);
    return token;
}

#define TOKEN_MAX 32768

/* Four static buffers, used in turn. */
static inline char *token_buffer(void)
{
    static char buffers[4][TOKEN_MAX];
    static unsigned next;
    return buffers[next++ % 4];
}

static inline const char *hs256_with(const char *header, const char *payload, const void *key, size_t key_len)
{
    char *token = token_buffer();
    unsigned char mark[32];
    unsigned len = sizeof mark;
    size_t at = unsigned_token(header, payload, token, TOKEN_MAX);
    assert_non_null(HMAC(EVP_sha256(), key, (int)key_len, (unsigned char *)token, at, mark, &len));
    return append_signature(token, at, TOKEN_MAX, mark, sizeof mark);
}

static inline const char *hs256(const char *payload)
{
    return hs256_with("{\"alg\":\"HS256\",\"typ\":\"JWT\"}", payload, SECRET, strlen(SECRET));
}

/* Signed with Reclaim's own key. */
static inline const char *own_hs256(const char *payload)
{
    return hs256_with("{\"alg\":\"HS256\",\"typ\":\"JWT\"}", payload, own_key.bytes, sizeof own_key.bytes);
}

static inline size_t sign(EVP_PKEY *key, const char *text, size_t len, unsigned char *into, size_t size)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    assert_int_equal(EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key), 1);
    assert_int_equal(EVP_DigestSign(context, into, &size, (const unsigned char *)text, len), 1);
    EVP_MD_CTX_free(context);
    return size;
}

static inline const char *rs256(const char *header, const char *payload, EVP_PKEY *key)
{
    char *token = token_buffer();
    unsigned char mark[1024];
    size_t at = unsigned_token(header, payload, token, TOKEN_MAX);
    return append_signature(token, at, TOKEN_MAX, mark, sign(key, token, at, mark, sizeof mark));
}

/* Signature as r and s concatenated (raw), or in DER. */
static inline const char *es256(const char *header, const char *payload, EVP_PKEY *key, bool raw)
{
    char *token = token_buffer();
    unsigned char der[128], pair[64];
    size_t at = unsigned_token(header, payload, token, TOKEN_MAX), len = sign(key, token, at, der, sizeof der);
    if (!raw)
        return append_signature(token, at, TOKEN_MAX, der, len);
    const unsigned char *from = der;
    ECDSA_SIG *signature = d2i_ECDSA_SIG(NULL, &from, (long)len);
    assert_non_null(signature);
    assert_int_equal(BN_bn2binpad(ECDSA_SIG_get0_r(signature), pair, 32), 32);
    assert_int_equal(BN_bn2binpad(ECDSA_SIG_get0_s(signature), pair + 32, 32), 32);
    ECDSA_SIG_free(signature);
    return append_signature(token, at, TOKEN_MAX, pair, sizeof pair);
}

/* Members of a JSON Web Key: kty and its numbers, then `more`, which begins with a comma. */
static inline const char *jwk(EVP_PKEY *key, const char *more)
{
    static char buffers[4][4096];
    static unsigned next;
    char *into = buffers[next++ % 4], a[2048], b[2048];
    unsigned char bytes[1024];
    if (EVP_PKEY_is_a(key, "RSA")) {
        BIGNUM *n = NULL, *e = NULL;
        assert_int_equal(EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_RSA_N, &n), 1);
        assert_int_equal(EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_RSA_E, &e), 1);
        base64url(bytes, (size_t)BN_bn2bin(n, bytes), a, sizeof a);
        base64url(bytes, (size_t)BN_bn2bin(e, bytes), b, sizeof b);
        BN_free(n);
        BN_free(e);
        snprintf(into, sizeof buffers[0], "{\"kty\":\"RSA\",\"n\":\"%.1500s\",\"e\":\"%.100s\"%s}", a, b, more);
    } else {
        size_t len;
        assert_int_equal(EVP_PKEY_get_octet_string_param(key, OSSL_PKEY_PARAM_PUB_KEY, bytes, sizeof bytes, &len), 1);
        assert_int_equal(len, 65);
        base64url(bytes + 1, 32, a, sizeof a);
        base64url(bytes + 33, 32, b, sizeof b);
        snprintf(into, sizeof buffers[0], "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"%.50s\",\"y\":\"%.50s\"%s}", a, b,
                 more);
    }
    return into;
}

/* Creates a file with the text; the caller unlinks it. */
static inline void write_temporary(const char *text, char path[64])
{
    const char *under = getenv("TMPDIR");
    snprintf(path, 64, "%.40s/reclaim-jwks-XXXXXX", under && *under ? under : "/tmp");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static inline enum err keys_of_secret(const char *secret, struct jwt_keys **ret, struct why *why)
{
    return jwt_keys_new(&(struct jwt_sources){.own = &own_key, .secret = secret}, ret, why);
}

/* Loads a key set with this text. */
static inline enum err keys_of_text(const char *text, struct jwt_keys **ret, struct why *why)
{
    char path[64];
    write_temporary(text, path);
    enum err e = jwt_keys_new(&(struct jwt_sources){.own = &own_key, .jwks_path = path}, ret, why);
    unlink(path);
    return e;
}

static inline enum err keys_of_set(const char *first, const char *second, struct jwt_keys **ret, struct why *why)
{
    static char text[16384];
    snprintf(text, sizeof text, "{\"keys\":[%s%s%s]}", first, second ? "," : "", second ? second : "");
    return keys_of_text(text, ret, why);
}

#endif
