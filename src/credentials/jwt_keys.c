#include "credentials/jwt_keys.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/param_build.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "credentials/base64url.h"

#define JWKS_FILE_MAX ((size_t)128 << 10)
/* Shorter moduli can be factored; longer ones make each verification slow. */
#define RSA_BYTES_MIN 256
#define RSA_BYTES_MAX 1024
#define RSA_EXPONENT_BYTES_MAX 4

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
    struct str curve;
    if (json_get_str(jwk, "crv", &curve) || !str_eq(curve, STR("P-256")) ||
        member_bytes(jwk, "x", point + 1, ES256_HALF, &x_len) || x_len != ES256_HALF ||
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

/* Whether the member is absent or has this value: "use", "alg" and "crv" restrict how a key may be used. */
static bool allows(const json_t *jwk, const char *name, struct str wanted)
{
    struct str text;
    enum err e = json_get_str(jwk, name, &text);
    return e == ERR_MISSING || (!e && str_eq(text, wanted));
}

/* ERR_MISSING for keys for other purposes, which a set may contain; ERR_INPUT for a malformed key. */
static enum err read_jwk(const json_t *jwk, struct jwt_public_key *ret)
{
    struct str type, kid = {0};
    if (json_get_str(jwk, "kty", &type))
        return ERR_INPUT;
    bool rsa = str_eq(type, STR("RSA")), ec = str_eq(type, STR("EC"));
    if ((!rsa && !ec) || !allows(jwk, "use", STR("sig")) || !allows(jwk, "alg", rsa ? STR("RS256") : STR("ES256")) ||
        (ec && !allows(jwk, "crv", STR("P-256"))))
        return ERR_MISSING;

    struct jwt_public_key key = {.algorithm = rsa ? JWT_RS256 : JWT_ES256};
    enum err e = json_get_str(jwk, "kid", &kid);
    key.has_kid = !e;
    if (e == ERR_INPUT || (!e && str_copy(kid, key.kid, sizeof key.kid)))
        return ERR_INPUT;
    key.key = rsa ? rsa_key(jwk) : ec_key(jwk);
    if (!key.key)
        return ERR_INPUT;
    *ret = key;
    return OK;
}

static enum err read_file(const char *path, struct buf *out, struct why *why)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char part[4096];
    ssize_t got = fd < 0 ? -1 : 1;
    while (got > 0 && !out->failed) {
        got = read(fd, part, sizeof part);
        if (got > 0)
            buf_add(out, (struct str){part, (size_t)got});
    }
    int error = errno;
    if (fd >= 0)
        close(fd);
    if (got < 0)
        return why_set(why, ERR_SYSTEM, "RECLAIM_JWKS_FILE: \"%s\" cannot be read: %s", path, strerror(error));
    if (out->failed)
        return why_set(why, ERR_INPUT, "RECLAIM_JWKS_FILE: \"%s\" is larger than %zu KiB", path, JWKS_FILE_MAX >> 10);
    return OK;
}

static enum err read_set(struct jwt_keys *keys, const char *path, struct why *why)
{
    AUTO(buf) struct buf text = buf_new(JWKS_FILE_MAX);
    enum err e = read_file(path, &text, why);
    if (e)
        return e;
    struct why inner = {""};
    AUTO(json) json_t *root = json_read_object(buf_str(&text), &inner);
    if (!root)
        return why_set(why, ERR_INPUT, "RECLAIM_JWKS_FILE: \"%s\" is not a JSON Web Key Set: %s", path, inner.text);
    const json_t *set = json_object_get(root, "keys");
    if (!json_is_array(set))
        return why_set(why, ERR_INPUT, "RECLAIM_JWKS_FILE: \"%s\" has no list \"keys\"", path);
    for (size_t i = 0; i < json_array_size(set); i++) {
        struct jwt_public_key key;
        e = read_jwk(json_array_get(set, i), &key);
        if (e == ERR_MISSING)
            continue;
        if (e)
            return why_set(why, ERR_INPUT,
                           "RECLAIM_JWKS_FILE: key %zu of \"%s\" is not an RSA key of 2048 to 8192 bits or a key on "
                           "the curve P-256",
                           i + 1, path);
        if (keys->count == JWKS_KEYS_MAX) {
            EVP_PKEY_free(key.key);
            return why_set(why, ERR_INPUT, "RECLAIM_JWKS_FILE: \"%s\" holds more than %d keys", path, JWKS_KEYS_MAX);
        }
        keys->keys[keys->count++] = key;
    }
    if (keys->count == 0)
        return why_set(why, ERR_INPUT, "RECLAIM_JWKS_FILE: \"%s\" holds no key for RS256 or ES256", path);
    return OK;
}

static enum err load_sources(struct jwt_keys *keys, const struct jwt_sources *from, struct why *why)
{
    size_t len = from->secret ? strlen(from->secret) : 0;
    if (from->secret && (len < JWT_SECRET_MIN || len > JWT_SECRET_MAX))
        return why_set(why, ERR_INPUT, "RECLAIM_JWT_SECRET: its value (not shown) is not a secret of %d to %d bytes",
                       JWT_SECRET_MIN, JWT_SECRET_MAX);
    if (str_copy(str_of(from->issuer ? from->issuer : ""), keys->issuer, sizeof keys->issuer) ||
        str_copy(str_of(from->audience ? from->audience : ""), keys->audience, sizeof keys->audience))
        return why_set(why, ERR_INPUT, "RECLAIM_JWT_ISSUER or RECLAIM_JWT_AUDIENCE is longer than %d bytes",
                       JWT_NAME_MAX);
    crypto_auth_hmacsha256_init(&keys->own, from->own->bytes, sizeof from->own->bytes);
    if (from->secret)
        crypto_auth_hmacsha256_init(&keys->secret, (const unsigned char *)from->secret, len);
    keys->has_secret = from->secret != NULL;
    return from->jwks_path ? read_set(keys, from->jwks_path, why) : OK;
}

enum err jwt_keys_new(const struct jwt_sources *from, struct jwt_keys **ret, struct why *why)
{
    static _Atomic uint64_t serials;
    struct jwt_keys *keys = calloc(1, sizeof *keys);
    if (!keys)
        return why_set(why, ERR_MEMORY, "no memory for the keys that verify tokens");
    enum err e = load_sources(keys, from, why);
    if (e) {
        jwt_keys_free(keys);
        return e;
    }
    keys->serial = atomic_fetch_add(&serials, 1) + 1;
    *ret = keys;
    return OK;
}

void jwt_keys_free(struct jwt_keys *keys)
{
    if (!keys)
        return;
    for (size_t i = 0; i < keys->count; i++)
        EVP_PKEY_free(keys->keys[i].key);
    sodium_memzero(keys, sizeof *keys);
    free(keys);
}

void jwt_keys_cleanup(struct jwt_keys **keys)
{
    jwt_keys_free(*keys);
}

bool jwt_keys_know_others(const struct jwt_keys *keys)
{
    return keys->has_secret || keys->count > 0;
}

uint64_t jwt_keys_serial(const struct jwt_keys *keys)
{
    return keys->serial;
}
