#include "base/digest.h"

#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <sodium.h>
#include <string.h>

struct digest digest_sha256(struct str data)
{
    struct digest d;
    crypto_hash_sha256(d.bytes, (const unsigned char *)data.at, data.len);
    return d;
}

struct digest digest_sha256_parts(const struct str *parts, size_t count)
{
    crypto_hash_sha256_state state;
    struct digest d;
    crypto_hash_sha256_init(&state);
    for (size_t i = 0; i < count; i++)
        crypto_hash_sha256_update(&state, (const unsigned char *)parts[i].at, parts[i].len);
    crypto_hash_sha256_final(&state, d.bytes);
    return d;
}

struct digest digest_quick(struct str data)
{
    struct digest d;
    crypto_generichash(d.bytes, sizeof d.bytes, (const unsigned char *)data.at, data.len, NULL, 0);
    return d;
}

struct digest digest_hmac(const struct digest *key, struct str data)
{
    _Static_assert(crypto_auth_hmacsha256_KEYBYTES == DIGEST_LEN, "a digest serves as a key");
    struct digest d;
    crypto_auth_hmacsha256(d.bytes, (const unsigned char *)data.at, data.len, key->bytes);
    return d;
}

enum err digest_derive(struct str master, const char *purpose, struct digest *ret)
{
    if (!master.at || master.len == 0)
        return ERR_INPUT;

    EVP_KDF *kdf = EVP_KDF_fetch(NULL, OSSL_KDF_NAME_HKDF, NULL);
    EVP_KDF_CTX *context = kdf ? EVP_KDF_CTX_new(kdf) : NULL;
    /* OpenSSL declares all parameters writable but does not write these. */
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char *)"SHA256", 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)master.at, master.len),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, (void *)purpose, strlen(purpose)),
        OSSL_PARAM_construct_end(),
    };
    struct digest key;
    enum err e = context && EVP_KDF_derive(context, key.bytes, sizeof key.bytes, parameters) == 1 ? OK : ERR_SYSTEM;
    EVP_KDF_CTX_free(context);
    EVP_KDF_free(kdf);
    if (!e)
        *ret = key;
    secret_wipe(&key, sizeof key);
    return e;
}

void hex_write(const uint8_t *bytes, size_t len, char *into)
{
    sodium_bin2hex(into, 2 * len + 1, bytes, len);
}

enum err hex_read(struct str hex, uint8_t *into, size_t len)
{
    size_t written;
    if (hex.len != 2 * len || sodium_hex2bin(into, len, hex.at, hex.len, NULL, &written, NULL) != 0 || written != len)
        return ERR_INPUT;
    return OK;
}

void digest_hex(const struct digest *d, char into[DIGEST_HEX_LEN + 1])
{
    hex_write(d->bytes, sizeof d->bytes, into);
}

enum err digest_parse(struct str hex, struct digest *ret)
{
    return hex_read(hex, ret->bytes, sizeof ret->bytes);
}

struct str digest_str(const struct digest *d)
{
    return (struct str){(const char *)d->bytes, DIGEST_LEN};
}

bool digest_eq(const struct digest *a, const struct digest *b)
{
    return sodium_memcmp(a->bytes, b->bytes, DIGEST_LEN) == 0;
}

void secret_wipe(void *at, size_t len)
{
    sodium_memzero(at, len);
}
