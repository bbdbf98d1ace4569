#include "credentials/jwk.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/param_build.h>
#include <string.h>

#include "base/base64url.h"

/* Shorter moduli can be factored; longer ones make each verification slow. */
#define RSA_BYTES_MIN 256
#define RSA_BYTES_MAX 1024
#define RSA_EXPONENT_BYTES_MAX 4
#define ED25519_BYTES 32

/* Decodes a member in base64url. */
static enum err member_bytes(const json_t *jwk, const char *name, unsigned char *into, size_t size, size_t *ret_len)
{
    struct str text;
    if (json_get_str(jwk, name, &text))
        return ERR_INPUT;
    return base64url_read(text, into, size, ret_len);
}

static EVP_PKEY *key_from(const char *type, OSSL_PARAM *parameters)
{
    EVP_PKEY *key = NULL;
    EVP_PKEY_CTX *context = parameters ? EVP_PKEY_CTX_new_from_name(NULL, type, NULL) : NULL;
    ERR_set_mark();
    if (context && EVP_PKEY_fromdata_init(context) == 1)
        (void)EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, parameters);
    ERR_pop_to_mark();
    EVP_PKEY_CTX_free(context);
    OSSL_PARAM_free(parameters);
    return key;
}

static EVP_PKEY *rsa_key(const json_t *jwk)
{
    unsigned char n[RSA_BYTES_MAX], e[RSA_EXPONENT_BYTES_MAX];
    size_t n_len, e_len;
    if (member_bytes(jwk, "n", n, sizeof n, &n_len) || member_bytes(jwk, "e", e, sizeof e, &e_len))
        return NULL;
    bool odd = e_len > 0 && n_len > 0 && (e[e_len - 1] & 1) && (n[n_len - 1] & 1);
    if (!odd || n_len < RSA_BYTES_MIN || n[0] == 0 || (e_len == 1 && e[0] < 3))
        return NULL;

    BIGNUM *modulus = BN_bin2bn(n, (int)n_len, NULL), *exponent = BN_bin2bn(e, (int)e_len, NULL);
    OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
    OSSL_PARAM *parameters = NULL;
    if (modulus && exponent && build && BN_num_bits(modulus) >= RSA_BYTES_MIN * 8 &&
        OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_N, modulus) == 1 &&
        OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_E, exponent) == 1)
        parameters = OSSL_PARAM_BLD_to_param(build);
    EVP_PKEY *key = key_from("RSA", parameters);
    OSSL_PARAM_BLD_free(build);
    BN_free(modulus);
    BN_free(exponent);
    return key;
}

/* OpenSSL checks that the point is on the curve. */
static EVP_PKEY *ec_key(const json_t *jwk)
{
    unsigned char point[1 + 2 * ES256_HALF] = {4}; /* uncompressed */
    size_t x_len, y_len;
    if (member_bytes(jwk, "x", point + 1, ES256_HALF, &x_len) || x_len != ES256_HALF ||
        member_bytes(jwk, "y", point + 1 + ES256_HALF, ES256_HALF, &y_len) || y_len != ES256_HALF)
        return NULL;
    OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
    OSSL_PARAM *parameters = NULL;
    if (build && OSSL_PARAM_BLD_push_utf8_string(build, OSSL_PKEY_PARAM_GROUP_NAME, "P-256", 0) == 1 &&
        OSSL_PARAM_BLD_push_octet_string(build, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof point) == 1)
        parameters = OSSL_PARAM_BLD_to_param(build);
    EVP_PKEY *key = key_from("EC", parameters);
    OSSL_PARAM_BLD_free(build);
    return key;
}

/* libsodium refuses points of small order, for which one signature fits every text. */
static EVP_PKEY *ed25519_key(const json_t *jwk)
{
    unsigned char point[ED25519_BYTES], montgomery[crypto_scalarmult_curve25519_BYTES];
    size_t len;
    if (member_bytes(jwk, "x", point, sizeof point, &len) || len != sizeof point ||
        crypto_sign_ed25519_pk_to_curve25519(montgomery, point) != 0)
        return NULL;
    return EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, point, sizeof point);
}

static bool read_secret(const json_t *jwk, crypto_auth_hmacsha256_state *ret)
{
    unsigned char bytes[JWT_SECRET_MAX];
    size_t len;
    bool fine = member_bytes(jwk, "k", bytes, sizeof bytes, &len) == OK && len >= JWT_SECRET_MIN;
    if (fine)
        crypto_auth_hmacsha256_init(ret, bytes, len);
    sodium_memzero(bytes, sizeof bytes);
    return fine;
}

/* How each type of key is used here. */
static const struct jwk_type {
    struct str kty, crv; /* `crv` absent: the type has none */
    struct str alg;
    enum jwt_algorithm algorithm;
    EVP_PKEY *(*read)(const json_t *jwk); /* NULL: a secret */
} types[] = {
    {{"RSA", 3}, {0}, {"RS256", 5}, JWT_RS256, rsa_key},
    {{"EC", 2}, {"P-256", 5}, {"ES256", 5}, JWT_ES256, ec_key},
    {{"OKP", 3}, {"Ed25519", 7}, {"EdDSA", 5}, JWT_EDDSA, ed25519_key},
    {{"oct", 3}, {0}, {"HS256", 5}, JWT_HS256, NULL},
};

/* Whether the member is absent or has this value: "use" and "alg" restrict how a key may be used. */
static bool allows(const json_t *jwk, const char *name, struct str wanted)
{
    struct str text;
    enum err e = json_get_str(jwk, name, &text);
    return e == ERR_MISSING || (!e && str_eq(text, wanted));
}

static bool is_of(const json_t *jwk, const struct jwk_type *type, struct str kty)
{
    return str_eq(kty, type->kty) && allows(jwk, "use", STR("sig")) && allows(jwk, "alg", type->alg) &&
           (!type->crv.at || allows(jwk, "crv", type->crv));
}

static bool has_member(const json_t *jwk, const char *name)
{
    struct str text;
    return json_get_str(jwk, name, &text) == OK;
}

static enum jwk_verdict read_as(const json_t *jwk, const struct jwk_type *type, enum jwk_kinds kinds,
                                struct jwt_key *ret)
{
    struct jwt_key key = {.algorithm = type->algorithm};
    struct str kid;
    enum err e = json_get_str(jwk, "kid", &kid);
    key.has_kid = !e;
    if (!type->read && kinds == JWK_PUBLIC_ONLY)
        return JWK_SECRET;
    if (e == ERR_INPUT || (!e && str_copy(kid, key.kid, sizeof key.kid)) || (type->crv.at && !has_member(jwk, "crv")))
        return JWK_MALFORMED;
    if (type->read ? !(key.key = type->read(jwk)) : !read_secret(jwk, &key.secret))
        return JWK_MALFORMED;
    *ret = key;
    return JWK_FINE;
}

enum jwk_verdict jwk_read(const json_t *jwk, enum jwk_kinds kinds, struct jwt_key *ret)
{
    struct str kty;
    if (json_get_str(jwk, "kty", &kty))
        return JWK_MALFORMED;
    for (size_t i = 0; i < COUNT_OF(types); i++)
        if (is_of(jwk, &types[i], kty))
            return read_as(jwk, &types[i], kinds, ret);
    return JWK_OTHER_USE;
}
