#include "proof/jws.h"

#include <stdlib.h>

#include "base/base64url.h"
#include "base/json.h"

#define HEADER_MAX 512

void jws_write(const struct proof_key *key, const char *typ, struct str payload, struct buf *out)
{
    char header[256];
    uint8_t signature[PROOF_SIGNATURE_LEN];
    struct buf head = buf_over(header, sizeof header);
    size_t start = out->len;
    buf_addf(&head, "{\"alg\":\"EdDSA\",\"kid\":\"%s\",\"typ\":\"%s\"}", key->public.kid, typ);
    base64url_add(out, buf_str(&head));
    buf_addz(out, ".");
    base64url_add(out, payload);
    if (out->failed)
        return;
    proof_sign(key, (struct str){out->at + start, out->len - start}, signature);
    buf_addz(out, ".");
    base64url_add(out, (struct str){(const char *)signature, sizeof signature});
}

static enum err read_header(struct str part, const char *typ, const struct proof_key_set *set,
                            const struct proof_public_key **ret, struct why *why)
{
    unsigned char bytes[HEADER_MAX];
    size_t len;
    if (base64url_read(part, bytes, sizeof bytes, &len))
        return why_set(why, ERR_INPUT, "its header is not base64url of at most %d bytes", HEADER_MAX);
    AUTO(json) json_t *header = json_read_object((struct str){(const char *)bytes, len}, NULL);
    struct str alg, kid, found;
    if (json_get_str(header, "alg", &alg) || !str_eq(alg, STR("EdDSA")))
        return why_set(why, ERR_INPUT, "it is not signed with EdDSA");
    if (json_get_str(header, "typ", &found) || !str_eq(found, str_of(typ)))
        return why_set(why, ERR_INPUT, "its type is not %s", typ);
    if (json_get_str(header, "kid", &kid) || !(*ret = proof_key_find(set, kid)))
        return why_set(why, ERR_INPUT, "it is signed with a key that is not in the key set");
    return OK;
}

static enum err read_payload(struct str part, struct buf *out, struct why *why)
{
    size_t len;
    unsigned char *bytes = malloc(part.len + 1);
    enum err e = bytes ? base64url_read(part, bytes, part.len + 1, &len) : ERR_MEMORY;
    if (!e)
        buf_add(out, (struct str){(const char *)bytes, len});
    free(bytes);
    if (e == ERR_INPUT)
        return why_set(why, e, "its content is not base64url");
    return e ? e : out->failed;
}

enum err jws_read(struct str text, const char *typ, const struct proof_key_set *set, struct buf *payload,
                  struct why *why)
{
    struct str rest = text, header, content, signed_by;
    uint8_t signature[PROOF_SIGNATURE_LEN];
    size_t len;
    const struct proof_public_key *key = NULL;
    if (!str_split(&rest, '.', &header) || !str_split(&rest, '.', &content) || !str_split(&rest, '.', &signed_by) ||
        rest.at)
        return why_set(why, ERR_INPUT, "it does not have the three parts of a compact JWS");
    enum err e = read_header(header, typ, set, &key, why);
    if (e)
        return e;
    struct str message = {text.at, (size_t)(content.at + content.len - text.at)};
    if (base64url_read(signed_by, signature, sizeof signature, &len) || len != sizeof signature ||
        !proof_holds(key, message, signature))
        return why_set(why, ERR_INPUT, "its signature does not hold: it was changed, or signed with another key");
    return read_payload(content, payload, why);
}
