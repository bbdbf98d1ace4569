#include "proof/proof_key.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/base64url.h"
#include "base/json.h"

/* The thumbprint is taken of the required members in alphabetical order, without spaces (RFC 7638, section 3). */
static void name_key(struct proof_public_key *key)
{
    char text[128], kid[PROOF_KID_LEN + 1];
    struct buf members = buf_over(text, sizeof text), out = buf_over(kid, sizeof kid);
    buf_addz(&members, "{\"crv\":\"Ed25519\",\"kty\":\"OKP\",\"x\":\"");
    base64url_add(&members, (struct str){(const char *)key->bytes, sizeof key->bytes});
    buf_addz(&members, "\"}");
    struct digest thumbprint = digest_sha256(buf_str(&members));
    base64url_add(&out, digest_str(&thumbprint));
    memcpy(key->kid, kid, sizeof key->kid);
}

static enum err derive_generation(struct str master, int generation, struct proof_key *ret)
{
    char purpose[32];
    struct digest seed;
    snprintf(purpose, sizeof purpose, "proof %d", generation);
    enum err e = digest_derive(master, purpose, &seed);
    if (e)
        return e;
    crypto_sign_seed_keypair(ret->public.bytes, ret->secret, seed.bytes);
    secret_wipe(&seed, sizeof seed);
    name_key(&ret->public);
    return OK;
}

enum err proof_keys_derive(struct str master, struct proof_keys *ret)
{
    enum err e = OK;
    for (int i = 0; i < PROOF_GENERATIONS && !e; i++)
        e = derive_generation(master, i + 1, &ret->generations[i]);
    return e;
}

void proof_keys_wipe(struct proof_keys *keys)
{
    secret_wipe(keys, sizeof *keys);
}

void proof_keys_public(const struct proof_keys *keys, int generation, struct proof_key_set *ret)
{
    ret->count = 0;
    for (int i = 0; i < generation && i < PROOF_GENERATIONS; i++)
        ret->keys[ret->count++] = keys->generations[i].public;
}

void proof_sign(const struct proof_key *key, struct str message, uint8_t ret[PROOF_SIGNATURE_LEN])
{
    crypto_sign_detached(ret, NULL, (const unsigned char *)message.at, message.len, key->secret);
}

bool proof_holds(const struct proof_public_key *key, struct str message, const uint8_t signature[PROOF_SIGNATURE_LEN])
{
    return crypto_sign_verify_detached(signature, (const unsigned char *)message.at, message.len, key->bytes) == 0;
}

const struct proof_public_key *proof_key_find(const struct proof_key_set *set, struct str kid)
{
    for (size_t i = 0; i < set->count; i++)
        if (str_eq(kid, str_of(set->keys[i].kid)))
            return &set->keys[i];
    return NULL;
}

void proof_key_set_write(const struct proof_key_set *set, struct buf *out)
{
    buf_addz(out, "{\"keys\":[");
    for (size_t i = 0; i < set->count; i++) {
        buf_addf(out,
                 "%s{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"alg\":\"EdDSA\",\"use\":\"sig\",\"kid\":\"%s\",\"x\":\"",
                 i ? "," : "", set->keys[i].kid);
        base64url_add(out, (struct str){(const char *)set->keys[i].bytes, PROOF_PUBLIC_LEN});
        buf_addz(out, "\"}");
    }
    buf_addz(out, "]}");
}

static bool member_is(const json_t *jwk, const char *name, struct str value)
{
    struct str found;
    return json_get_str(jwk, name, &found) == OK && str_eq(found, value);
}

/* False for a key of another kind. The kid is made of the key itself, whatever the set calls it. */
static bool read_key(const json_t *jwk, struct proof_public_key *ret)
{
    struct str x;
    size_t len;
    if (!member_is(jwk, "kty", STR("OKP")) || !member_is(jwk, "crv", STR("Ed25519")) || json_get_str(jwk, "x", &x) ||
        base64url_read(x, ret->bytes, sizeof ret->bytes, &len) || len != PROOF_PUBLIC_LEN)
        return false;
    name_key(ret);
    return true;
}

enum err proof_key_set_read(struct str text, struct proof_key_set *ret, struct why *why)
{
    struct why inner;
    AUTO(json) json_t *root = json_read_object(text, &inner);
    if (!root)
        return why_set(why, ERR_INPUT, "the key set is not JSON: %s", inner.text);
    const json_t *keys = json_object_get(root, "keys"), *jwk;
    size_t i;
    ret->count = 0;
    json_array_foreach(keys, i, jwk) if (ret->count < PROOF_GENERATIONS && read_key(jwk, &ret->keys[ret->count]))
        ret->count++;
    if (!keys && read_key(root, &ret->keys[0]))
        ret->count = 1;
    return ret->count ? OK : why_set(why, ERR_INPUT, "the key set has no Ed25519 key");
}
