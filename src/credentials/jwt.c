#include "credentials/jwt.h"

#include <math.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <string.h>

#include "base/base64url.h"
#include "base/digest.h"
#include "base/json.h"
#include "credentials/jwt_keys.h"

#define HEADER_MAX 1024    /* bytes of JSON */
#define SIGNATURE_MAX 1024 /* an RSA key of 8192 bits */
#define US_PER_S 1000000
#define SECONDS_MAX 253402300799 /* the end of the year 9999 */

const char *jwt_fault_text(enum jwt_fault fault)
{
    switch (fault) {
    case JWT_FINE:
        return "the token is valid";
    case JWT_MALFORMED:
        return "the token is malformed";
    case JWT_ALGORITHM:
        return "the token's signature algorithm is not accepted";
    case JWT_UNKNOWN_KEY:
        return "the token was signed with an unknown key";
    case JWT_SIGNATURE:
        return "the token's signature is not valid";
    case JWT_EXPIRED:
        return "the token has expired; sign in again";
    case JWT_NOT_YET:
        return "the token is not valid yet";
    case JWT_ISSUER:
        return "the token's issuer is not accepted";
    case JWT_AUDIENCE:
        return "the token was issued for another service";
    }
    return "the token cannot be used";
}

/* The parts of a token, still encoded. */
struct parts {
    struct str header, payload, signature;
    struct str signed_text; /* "header.payload" */
};

static bool split_token(struct str token, struct parts *ret)
{
    if (!token.at || token.len > JWT_MAX)
        return false;
    struct str rest = token;
    struct parts p;
    if (!str_split(&rest, '.', &p.header) || !str_split(&rest, '.', &p.payload) || !str_split(&rest, '.', &p.signature))
        return false;
    struct str more;
    if (str_split(&rest, '.', &more) || p.header.len == 0 || p.payload.len == 0)
        return false;
    p.signed_text = (struct str){token.at, p.header.len + 1 + p.payload.len};
    *ret = p;
    return true;
}

static json_t *read_part(struct str part, unsigned char *buffer, size_t size)
{
    size_t len;
    if (base64url_read(part, buffer, size, &len))
        return NULL;
    return json_read_object((struct str){(const char *)buffer, len}, NULL);
}

struct header {
    enum jwt_algorithm algorithm;
    bool has_kid;
    char kid[JWT_KID_MAX + 1];
};

static enum jwt_fault read_header(struct str part, struct header *ret)
{
    unsigned char buffer[HEADER_MAX];
    AUTO(json) json_t *root = read_part(part, buffer, sizeof buffer);
    struct str algorithm, kid;
    /* "crit" lists extensions that must be supported, and none is. */
    if (!root || json_get_str(root, "alg", &algorithm) || json_object_get(root, "crit"))
        return JWT_MALFORMED;
    struct header h = {0};
    enum err e = json_get_str(root, "kid", &kid);
    if (e == ERR_INPUT)
        return JWT_MALFORMED;
    h.has_kid = !e;
    if (h.has_kid && str_copy(kid, h.kid, sizeof h.kid))
        return JWT_UNKNOWN_KEY;
    if (str_eq(algorithm, STR("HS256")))
        h.algorithm = JWT_HS256;
    else if (str_eq(algorithm, STR("RS256")))
        h.algorithm = JWT_RS256;
    else if (str_eq(algorithm, STR("ES256")))
        h.algorithm = JWT_ES256;
    else if (str_eq(algorithm, STR("EdDSA")))
        h.algorithm = JWT_EDDSA;
    else
        return JWT_ALGORITHM;
    *ret = h;
    return JWT_FINE;
}

static bool hmac_matches(const crypto_auth_hmacsha256_state *secret, struct str text, struct str signature)
{
    unsigned char ours[crypto_auth_hmacsha256_BYTES];
    if (signature.len != sizeof ours)
        return false;
    crypto_auth_hmacsha256_state state = *secret;
    crypto_auth_hmacsha256_update(&state, (const unsigned char *)text.at, text.len);
    crypto_auth_hmacsha256_final(&state, ours);
    secret_wipe(&state, sizeof state);
    bool same = sodium_memcmp(ours, signature.at, sizeof ours) == 0;
    secret_wipe(ours, sizeof ours);
    return same;
}

/* `digest`: NULL for EdDSA, which hashes the text itself. */
static bool digest_verify(EVP_PKEY *key, const EVP_MD *digest, struct str text, struct str signature)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool good = context && EVP_DigestVerifyInit(context, NULL, digest, NULL, key) == 1 &&
                EVP_DigestVerify(context, (const unsigned char *)signature.at, signature.len,
                                 (const unsigned char *)text.at, text.len) == 1;
    EVP_MD_CTX_free(context);
    return good;
}

/* A token has r and s concatenated; OpenSSL expects DER. */
static bool ecdsa_matches(EVP_PKEY *key, struct str text, struct str signature)
{
    if (signature.len != (size_t)2 * ES256_HALF)
        return false;
    const unsigned char *at = (const unsigned char *)signature.at;
    BIGNUM *r = BN_bin2bn(at, ES256_HALF, NULL), *s = BN_bin2bn(at + ES256_HALF, ES256_HALF, NULL);
    ECDSA_SIG *pair = ECDSA_SIG_new();
    if (!r || !s || !pair || ECDSA_SIG_set0(pair, r, s) != 1) {
        BN_free(r);
        BN_free(s);
        ECDSA_SIG_free(pair);
        return false;
    }
    unsigned char *der = NULL;
    int len = i2d_ECDSA_SIG(pair, &der);
    bool good = len > 0 && digest_verify(key, EVP_sha256(), text, (struct str){(const char *)der, (size_t)len});
    OPENSSL_free(der);
    ECDSA_SIG_free(pair);
    return good;
}

static bool key_matches(const struct jwt_key *k, struct str text, struct str signature)
{
    bool good = false;
    if (k->algorithm == JWT_HS256)
        return hmac_matches(&k->secret, text, signature);
    /* Errors left in the queue of this thread would be attributed to its next TLS operation. */
    ERR_set_mark();
    if (k->algorithm == JWT_ES256)
        good = ecdsa_matches(k->key, text, signature);
    else
        good = digest_verify(k->key, k->algorithm == JWT_RS256 ? EVP_sha256() : NULL, text, signature);
    ERR_pop_to_mark();
    return good;
}

/* Whether the token may have been signed with this key. A secret without a "kid" is tried for all: it comes from a setting. */
static bool may_be_of(const struct header *h, const struct jwt_key *k)
{
    if (!h->has_kid || (k->algorithm == JWT_HS256 && !k->has_kid))
        return true;
    return k->has_kid && strcmp(k->kid, h->kid) == 0;
}

/* Tries the keys of the token's algorithm: those with its "kid", or all of them without one. */
static enum jwt_fault check_keys(const struct jwt_keys *keys, const struct header *h, struct str text,
                                 struct str signature)
{
    enum jwt_fault fault = h->has_kid && h->algorithm != JWT_HS256 ? JWT_UNKNOWN_KEY : JWT_ALGORITHM;
    for (size_t i = 0; i < keys->count; i++) {
        const struct jwt_key *k = &keys->keys[i];
        if (k->algorithm != h->algorithm || !may_be_of(h, k))
            continue;
        if (key_matches(k, text, signature))
            return JWT_FINE;
        fault = JWT_SIGNATURE;
    }
    return fault;
}

/* `own`: the issuer is Reclaim, so only Reclaim's own key is used, which is for HS256. */
static enum jwt_fault check_signature(const struct jwt_keys *keys, bool own, const struct header *h,
                                      const struct parts *p)
{
    unsigned char bytes[SIGNATURE_MAX];
    size_t len;
    if (own && h->algorithm != JWT_HS256)
        return JWT_ALGORITHM;
    if (base64url_read(p->signature, bytes, sizeof bytes, &len))
        return JWT_MALFORMED;
    struct str signature = {(const char *)bytes, len};
    if (own)
        return hmac_matches(&keys->own, p->signed_text, signature) ? JWT_FINE : JWT_SIGNATURE;
    return check_keys(keys, h, p->signed_text, signature);
}

/* RFC 7519's NumericDate, which may have a fraction. ERR_MISSING when absent. */
static enum err read_instant(const json_t *claims, const char *name, int64_t *ret_us)
{
    const json_t *value = json_object_get(claims, name);
    if (!value)
        return ERR_MISSING;
    if (json_is_integer(value)) {
        json_int_t seconds = json_integer_value(value);
        if (seconds < 0 || seconds > SECONDS_MAX)
            return ERR_INPUT;
        *ret_us = seconds * US_PER_S;
        return OK;
    }
    double seconds = json_is_real(value) ? json_real_value(value) : -1;
    if (!(seconds >= 0 && seconds <= (double)SECONDS_MAX))
        return ERR_INPUT;
    *ret_us = (int64_t)(seconds * US_PER_S);
    return OK;
}

static bool member_is(const json_t *object, const char *name, struct str wanted)
{
    struct str text;
    return json_get_str(object, name, &text) == OK && str_eq(text, wanted);
}

static struct claims copy_claims(const json_t *root, int64_t expires_us)
{
    struct claims c = {.expires_us = expires_us};
    struct str sub;
    if (json_get_str(root, "sub", &sub) == OK && str_is_uuid(sub) && str_copy(sub, c.sub, sizeof c.sub) == OK)
        str_lower(c.sub, sub.len);
    c.admin = member_is(root, "role", STR("service_role")) ||
              member_is(json_object_get(root, "app_metadata"), "role", STR("admin"));
    return c;
}

/* RFC 7519: "aud" is a string or an array of strings. */
static bool is_for(const json_t *root, struct str audience)
{
    const json_t *all = json_object_get(root, "aud");
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *one = json_array_get(all, i);
        if (json_is_string(one) && str_eq((struct str){json_string_value(one), json_string_length(one)}, audience))
            return true;
    }
    return member_is(root, "aud", audience);
}

static enum jwt_fault check_issuer_and_audience(const struct jwt_keys *keys, bool own, const json_t *root)
{
    struct str audience = own ? STR(JWT_OWN_NAME) : str_of(keys->audience);
    if (!own && keys->issuer[0] && !member_is(root, "iss", str_of(keys->issuer)))
        return JWT_ISSUER;
    return audience.len == 0 || is_for(root, audience) ? JWT_FINE : JWT_AUDIENCE;
}

/* "sid" of other issuers means a session of theirs and is ignored. A session always belongs to a user. */
static bool copy_session(const json_t *root, bool own, struct claims *c)
{
    struct str session;
    enum err e = own ? json_get_str(root, "sid", &session) : ERR_MISSING;
    if (e == ERR_MISSING)
        return true;
    if (e || !c->sub[0] || !str_is_uuid(session) || str_copy(session, c->session, sizeof c->session))
        return false;
    str_lower(c->session, session.len);
    return true;
}

static enum jwt_fault read_claims(const json_t *root, bool own, int64_t now_us, struct claims *ret)
{
    int64_t expires_us, not_before_us;
    if (read_instant(root, "exp", &expires_us))
        return JWT_MALFORMED;
    enum err e = read_instant(root, "nbf", &not_before_us);
    if (e == ERR_INPUT)
        return JWT_MALFORMED;
    if (now_us >= expires_us + JWT_LEEWAY_US)
        return JWT_EXPIRED;
    if (!e && now_us < not_before_us - JWT_LEEWAY_US)
        return JWT_NOT_YET;
    struct claims c = copy_claims(root, expires_us);
    if (!copy_session(root, own, &c))
        return JWT_MALFORMED;
    *ret = c;
    return JWT_FINE;
}

enum jwt_fault jwt_verify(const struct jwt_keys *keys, struct str token, int64_t now_us, struct claims *ret)
{
    struct parts parts;
    struct header header;
    unsigned char buffer[JWT_MAX];
    if (!split_token(token, &parts))
        return JWT_MALFORMED;
    enum jwt_fault fault = read_header(parts.header, &header);
    if (fault)
        return fault;
    AUTO(json) json_t *root = read_part(parts.payload, buffer, sizeof buffer);
    if (!root)
        return JWT_MALFORMED;
    bool own = member_is(root, "iss", STR(JWT_OWN_NAME));
    if ((fault = check_signature(keys, own, &header, &parts)) || (fault = check_issuer_and_audience(keys, own, root)))
        return fault;
    return read_claims(root, own, now_us, ret);
}

static void write_claims(const struct jwt_grant *grant, struct buf *out)
{
    struct json_writer w = json_to(out);
    json_open(&w, '{');
    json_key(&w, "iss");
    json_str(&w, STR(JWT_OWN_NAME));
    json_key(&w, "aud");
    json_str(&w, STR(JWT_OWN_NAME));
    json_key(&w, "role");
    json_str(&w, str_of(grant->role));
    if (grant->sub) {
        json_key(&w, "sub");
        json_str(&w, str_of(grant->sub));
    }
    if (grant->session) {
        json_key(&w, "sid");
        json_str(&w, str_of(grant->session));
    }
    json_key(&w, "iat");
    json_i64(&w, grant->issued_us / US_PER_S);
    json_key(&w, "exp");
    json_i64(&w, grant->expires_us / US_PER_S);
    json_close(&w, '}');
}

enum err jwt_sign(const struct digest *own, const struct jwt_grant *grant, struct buf *out)
{
    char json_bytes[512], token_bytes[1024];
    struct buf json = buf_over(json_bytes, sizeof json_bytes), token = buf_over(token_bytes, sizeof token_bytes);
    write_claims(grant, &json);
    base64url_add(&token, STR("{\"alg\":\"HS256\",\"typ\":\"JWT\"}"));
    buf_addz(&token, ".");
    base64url_add(&token, buf_str(&json));
    if (!token.failed) {
        struct digest signature = digest_hmac(own, buf_str(&token));
        buf_addz(&token, ".");
        base64url_add(&token, (struct str){(const char *)signature.bytes, sizeof signature.bytes});
    }
    struct str all = buf_str(&token);
    if (all.at)
        buf_add(out, all);
    enum err e = all.at ? out->failed : ERR_MEMORY;
    secret_wipe(token_bytes, sizeof token_bytes);
    return e;
}
