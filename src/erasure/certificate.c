#include "erasure/certificate.h"

#include <stdlib.h>
#include <string.h>

#include "base/base64url.h"
#include "proof/jws.h"
#include "proof/salted_address.h"
#include "proof/sealed_log.h"

char *certificate_fact(const json_t *claims)
{
    json_t *sealed = json_copy((json_t *)claims); /* members are shared, and only taken out of the copy */
    if (!sealed)
        return NULL;
    json_object_del(sealed, "iat");
    json_object_del(sealed, "log");
    char *text = json_dumps(sealed, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(sealed);
    return text;
}

/* Writing */

static json_t *digest_json(const struct digest *d)
{
    char text[DIGEST_HEX_LEN];
    struct buf out = buf_over(text, sizeof text);
    base64url_add(&out, digest_str(d));
    return json_string(text);
}

static json_t *log_json(const struct certificate_place *place)
{
    json_t *path = json_array();
    for (size_t i = 0; path && i < place->path_len; i++)
        if (json_array_append_new(path, digest_json(&place->path[i]))) {
            json_decref(path);
            return NULL;
        }
    return json_pack("{s:I, s:o, s:I, s:o, s:s}", "position", (json_int_t)place->position, "path", path, "size",
                     (json_int_t)place->size, "root", digest_json(&place->root), "head", place->head);
}

enum err certificate_write(json_t *claims, int64_t issued_s, const struct certificate_place *place,
                           const struct proof_key *key, struct buf *out)
{
    if (json_object_set_new(claims, "iat", json_integer(issued_s)) ||
        json_object_set_new(claims, "log", log_json(place)))
        return ERR_MEMORY;
    char *text = json_dumps(claims, JSON_COMPACT | JSON_SORT_KEYS);
    if (!text)
        return ERR_MEMORY;
    jws_write(key, JWS_CERTIFICATE, str_of(text), out);
    free(text);
    return out->failed;
}

/* Checking */

static enum err read_hash(const json_t *text, struct digest *ret)
{
    size_t len;
    const char *at = json_string_value(text);
    return at && base64url_read(str_of(at), ret->bytes, sizeof ret->bytes, &len) == OK && len == sizeof ret->bytes
               ? OK
               : ERR_INPUT;
}

static enum err check_place(const json_t *claims, const json_t *log, struct digest *ret_root, struct why *why)
{
    struct digest path[MERKLE_LEVELS];
    const json_t *steps = json_object_get(log, "path");
    size_t len = json_array_size(steps);
    int64_t position = json_integer_value(json_object_get(log, "position"));
    int64_t size = json_integer_value(json_object_get(log, "size"));
    bool sound = json_is_array(steps) && len <= MERKLE_LEVELS && position >= 0 && position < size &&
                 read_hash(json_object_get(log, "root"), ret_root) == OK;
    for (size_t i = 0; sound && i < len; i++)
        sound = read_hash(json_array_get(steps, i), &path[i]) == OK;
    if (!sound)
        return why_set(why, ERR_INPUT, "it does not say where it is in the sealed log");
    char *fact = certificate_fact(claims);
    if (!fact)
        return why_set(why, ERR_MEMORY, "no memory");
    struct digest leaf = merkle_leaf(str_of(fact));
    free(fact);
    if (!merkle_path_holds(&leaf, (uint64_t)position, (uint64_t)size, path, len, ret_root))
        return why_set(why, ERR_INPUT, "its path does not lead to the root of the sealed log");
    return OK;
}

static enum err check_log(const json_t *claims, const struct proof_key_set *set, struct why *why)
{
    const json_t *log = json_object_get(claims, "log");
    const char *head_jws = json_string_value(json_object_get(log, "head"));
    struct digest root;
    struct sealed_head head;
    struct why inner;
    enum err e = check_place(claims, log, &root, why);
    if (e)
        return e;
    if (!head_jws || sealed_head_read(str_of(head_jws), set, &head, &inner))
        return why_set(why, ERR_INPUT, "the head of the sealed log in it does not hold%s%s", head_jws ? ": " : "",
                       head_jws ? inner.text : "");
    const char *installation = json_string_value(json_object_get(claims, "installation"));
    if (head.size != json_integer_value(json_object_get(log, "size")) || !digest_eq(&head.root, &root) ||
        !installation || strcmp(installation, head.installation) != 0)
        return why_set(why, ERR_INPUT, "the head of the sealed log in it is of another log or another size");
    return OK;
}

static bool has_texts(const json_t *object, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!json_is_string(json_object_get(object, names[i])))
            return false;
    return true;
}

static bool all_have(const json_t *list, const char *const *names, size_t count)
{
    size_t i;
    const json_t *entry;
    if (!json_is_array(list))
        return false;
    json_array_foreach(list, i, entry) if (!has_texts(entry, names, count)) return false;
    return true;
}

static bool all_done(const json_t *participants)
{
    size_t i;
    const json_t *entry;
    json_array_foreach(participants, i, entry)
    {
        const char *status = json_string_value(json_object_get(entry, "status"));
        if (strcmp(status, "done") != 0 || !json_is_integer(json_object_get(entry, "rows")))
            return false;
    }
    return true;
}

static bool has_shape(const json_t *claims)
{
    static const char *const texts[] = {"iss", "installation", "jti", "sub", "requested_at", "completed_at"};
    static const char *const of_participant[] = {"name", "kind", "status", "done_at", "how", "reported_by"};
    static const char *const of_kept[] = {"name", "kind", "reason"};
    static const char *const of_not_covered[] = {"what", "reason"};
    return has_texts(claims, texts, COUNT_OF(texts)) && json_is_integer(json_object_get(claims, "iat")) &&
           all_have(json_object_get(claims, "participants"), of_participant, COUNT_OF(of_participant)) &&
           all_done(json_object_get(claims, "participants")) &&
           all_have(json_object_get(claims, "kept"), of_kept, COUNT_OF(of_kept)) &&
           all_have(json_object_get(claims, "not_covered"), of_not_covered, COUNT_OF(of_not_covered));
}

json_t *certificate_check(struct str jws, const struct proof_key_set *set, struct why *why)
{
    AUTO(buf) struct buf payload = buf_new(CERTIFICATE_MAX);
    if (jws_read(jws, JWS_CERTIFICATE, set, &payload, why))
        return NULL;
    AUTO(json) json_t *claims = json_read_object(buf_str(&payload), NULL);
    if (!claims || !has_shape(claims)) {
        why_set(why, ERR_INPUT, "it lacks what a certificate of an erasure says");
        return NULL;
    }
    return check_log(claims, set, why) ? NULL : json_incref(claims);
}

enum err certificate_is_about(const json_t *claims, struct str address, struct str salt_hex, bool *ret)
{
    uint8_t salt[SALT_LEN];
    struct digest stated;
    const char *hash = json_string_value(json_object_get(json_object_get(claims, "address"), "hash"));
    if (!hash || digest_parse(str_of(hash), &stated))
        return ERR_MISSING;
    if (salt_hex.len != sizeof salt * 2 || hex_read(salt_hex, salt, sizeof salt) || address.len > SALTED_ADDRESS_MAX)
        return ERR_INPUT;
    struct digest own = salted_address(salt, address);
    *ret = digest_eq(&own, &stated);
    return OK;
}
