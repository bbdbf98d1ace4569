/* Tokens and key sets. The first byte says what the rest is: a token for the secret (0) or the public keys (1), which
 * must not be good since nobody here can sign; a payload (2) or a header (3) that is signed with the secret and with
 * Reclaim's own key, of which one at most is good; a key set (4). */
#include <sodium.h>
#include <sys/mman.h>
#include <unistd.h>

#include "credentials/jwt.h"
#include "fuzz.h"

#define SECRET "a secret of no worth, for fuzzing only"
#define NOW_US INT64_C(1800000000000000)

static const struct digest own_key = {{"a key of no worth, for fuzzing.."}};
static struct jwt_keys *secret_keys, *public_keys;

/* RFC 7515's. */
static const char key_set[] =
    "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","
    "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\",\"kid\":\"e\"},"
    "{\"kty\":\"RSA\",\"n\":\"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt"
    "0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQ"
    "OS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91"
    "kzk2PAcDTW9gb54h4FRWyuXpoQ\",\"e\":\"AQAB\",\"kid\":\"r\"}]}";

static enum err load_set(struct str text, struct jwt_keys **ret)
{
    char path[64];
    struct why why = {""};
    int fd = memfd_create("set", MFD_CLOEXEC);
    PROMISE(fd >= 0 && write(fd, text.at, text.len) == (ssize_t)text.len);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    enum err e = jwt_keys_new(&(struct jwt_sources){.own = &own_key, .jwks_path = path}, ret, &why);
    close(fd);
    PROMISE(e == OK || (e == ERR_INPUT && why.text[0]));
    return e;
}

static char *base64url(struct str bytes)
{
    size_t size = sodium_base64_ENCODED_LEN(bytes.len, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    char *text = malloc(size);
    PROMISE(text);
    return sodium_bin2base64(text, size, (const unsigned char *)bytes.at, bytes.len,
                             sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

static void check_claims(const struct claims *c)
{
    PROMISE(c->sub[0] == '\0' || str_is_uuid(str_of(c->sub)));
    for (const char *at = c->sub; *at; at++)
        PROMISE(!(*at >= 'A' && *at <= 'Z'));
    PROMISE(c->expires_us > NOW_US - JWT_LEEWAY_US && c->expires_us <= INT64_C(253402300799000000));
}

/* What `keys` say of the token signed with `secret`. */
static enum jwt_fault verify_signed(const struct jwt_keys *keys, struct str text, const void *secret, size_t secret_len)
{
    crypto_auth_hmacsha256_state state;
    unsigned char mark[crypto_auth_hmacsha256_BYTES];
    crypto_auth_hmacsha256_init(&state, secret, secret_len);
    crypto_auth_hmacsha256_update(&state, (const unsigned char *)text.at, text.len);
    crypto_auth_hmacsha256_final(&state, mark);
    char *tail = base64url((struct str){(char *)mark, sizeof mark});
    size_t size = text.len + strlen(tail) + 2;
    char *token = malloc(size);
    PROMISE(token);
    snprintf(token, size, "%s.%s", text.at, tail);
    struct claims claims;
    enum jwt_fault fault = jwt_verify(keys, str_of(token), NOW_US, &claims);
    if (fault == JWT_FINE)
        check_claims(&claims);
    free(token);
    free(tail);
    return fault;
}

static void check_signed(struct str header, struct str payload)
{
    char *head = base64url(header), *body = base64url(payload);
    size_t size = strlen(head) + strlen(body) + 2;
    char *text = malloc(size);
    PROMISE(text);
    int len = snprintf(text, size, "%s.%s", head, body);
    struct str all = {text, (size_t)len};
    enum jwt_fault by_secret = verify_signed(secret_keys, all, SECRET, sizeof SECRET - 1);
    enum jwt_fault by_own = verify_signed(secret_keys, all, own_key.bytes, sizeof own_key.bytes);
    PROMISE(by_secret != JWT_FINE || by_own != JWT_FINE);
    PROMISE(by_secret != JWT_SIGNATURE || by_own != JWT_SIGNATURE);
    PROMISE(verify_signed(public_keys, all, SECRET, sizeof SECRET - 1) != JWT_FINE);
    PROMISE(by_own != JWT_FINE || verify_signed(public_keys, all, own_key.bytes, sizeof own_key.bytes) == JWT_FINE);
    free(head);
    free(body);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct why why;
    if (!secret_keys) {
        PROMISE(jwt_keys_new(&(struct jwt_sources){.own = &own_key, .secret = SECRET}, &secret_keys, &why) == OK);
        PROMISE(load_set(str_of(key_set), &public_keys) == OK);
    }
    if (size < 1)
        return -1; /* not worth a place in the corpus */
    struct str text = fuzz_text(data + 1, size - 1);
    struct claims claims;
    struct jwt_keys *keys;
    switch (data[0] % 5) {
    case 0:
        PROMISE(jwt_verify(secret_keys, text, NOW_US, &claims) != JWT_FINE);
        break;
    case 1:
        PROMISE(jwt_verify(public_keys, text, NOW_US, &claims) != JWT_FINE);
        break;
    case 2:
        check_signed(STR("{\"alg\":\"HS256\"}"), text);
        break;
    case 3:
        check_signed(text, STR("{\"exp\":1900000000}"));
        break;
    default:
        if (load_set(text, &keys) == OK)
            jwt_keys_free(keys);
    }
    fuzz_text_free(text);
    return 0;
}
