#include "credentials/jwt_keys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "credentials/jwk.h"

#define JWKS_FILE_MAX ((size_t)128 << 10)

void jwt_key_free(struct jwt_key *key)
{
    EVP_PKEY_free(key->key);
    sodium_memzero(key, sizeof *key);
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

/* A file is the operator's, who wants to know what is wrong with it; of a set from elsewhere one key that is no use must not
 * keep the others from being used. */
struct set_of {
    const char *name; /* begins error messages */
    enum jwk_kinds kinds;
    bool passes_over_malformed;
};

static enum err read_set(struct jwt_keys *keys, struct str text, const struct set_of *of, struct why *why)
{
    struct why inner = {""};
    AUTO(json) json_t *root = json_read_object(text, &inner);
    if (!root)
        return why_set(why, ERR_INPUT, "%s is not a JSON Web Key Set: %s", of->name, inner.text);
    const json_t *set = json_object_get(root, "keys");
    if (!json_is_array(set))
        return why_set(why, ERR_INPUT, "%s has no list \"keys\"", of->name);
    size_t before = keys->count;
    for (size_t i = 0; i < json_array_size(set); i++) {
        struct jwt_key key;
        enum jwk_verdict verdict = jwk_read(json_array_get(set, i), of->kinds, &key);
        if (verdict == JWK_MALFORMED && !of->passes_over_malformed)
            return why_set(
                why, ERR_INPUT,
                "%s: key %zu is not an RSA key of 2048 to 8192 bits, a key on the curve P-256 or Ed25519, or "
                "a secret of %d to %d bytes",
                of->name, i + 1, JWT_SECRET_MIN, JWT_SECRET_MAX);
        if (verdict != JWK_FINE)
            continue;
        if (keys->count - before == JWKS_KEYS_MAX) {
            jwt_key_free(&key);
            return why_set(why, ERR_INPUT, "%s holds more than %d keys", of->name, JWKS_KEYS_MAX);
        }
        keys->keys[keys->count++] = key;
    }
    if (keys->count == before)
        return why_set(why, ERR_INPUT, "%s holds no key for RS256, ES256 or EdDSA%s", of->name,
                       of->kinds == JWK_AND_SECRETS ? ", nor a secret for HS256" : "");
    return OK;
}

/* The text may contain secrets: it is read into one place, and wiped. */
static enum err read_file_set(struct jwt_keys *keys, const char *path, struct why *why)
{
    char name[1280], *bytes = malloc(JWKS_FILE_MAX + 1);
    if (!bytes)
        return why_set(why, ERR_MEMORY, "no memory for RECLAIM_JWKS_FILE");
    struct buf text = buf_over(bytes, JWKS_FILE_MAX + 1);
    enum err e = read_file(path, &text, why);
    (void)snprintf(name, sizeof name, "RECLAIM_JWKS_FILE: \"%s\"", path);
    if (!e)
        e = read_set(keys, buf_str(&text), &(struct set_of){name, JWK_AND_SECRETS, false}, why);
    sodium_memzero(bytes, JWKS_FILE_MAX + 1);
    free(bytes);
    return e;
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
    if (from->secret) {
        struct jwt_key *secret = &keys->keys[keys->count++];
        secret->algorithm = JWT_HS256;
        crypto_auth_hmacsha256_init(&secret->secret, (const unsigned char *)from->secret, len);
    }
    enum err e = from->jwks_path ? read_file_set(keys, from->jwks_path, why) : OK;
    if (e || !from->jwks_read.at)
        return e;
    return read_set(keys, from->jwks_read, &(struct set_of){"RECLAIM_JWKS_URL", JWK_PUBLIC_ONLY, true}, why);
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
        jwt_key_free(&keys->keys[i]);
    sodium_memzero(keys, sizeof *keys);
    free(keys);
}

void jwt_keys_cleanup(struct jwt_keys **keys)
{
    jwt_keys_free(*keys);
}

size_t jwt_keys_count(const struct jwt_keys *keys)
{
    return keys->count;
}

uint64_t jwt_keys_serial(const struct jwt_keys *keys)
{
    return keys->serial;
}
