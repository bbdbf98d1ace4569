#include "proof/journal_line.h"

#include <string.h>

#include "base/base64url.h"
#include "base/clock.h"

const char *journal_kind_name(enum journal_kind kind)
{
    static const char *const names[JOURNAL_KINDS] = {
        [JOURNAL_ERASURE] = "erasure", [JOURNAL_HEAD] = "head", [JOURNAL_RESTORE] = "restore"};
    return names[kind];
}

/* Writing */

static void begin(const struct journal_chain *chain, enum journal_kind kind, struct json_writer *w, struct buf *out)
{
    char hex[DIGEST_HEX_LEN + 1];
    *w = json_to(out);
    json_open(w, '{');
    json_key(w, "v");
    json_i64(w, JOURNAL_VERSION);
    json_key(w, "kind");
    json_str(w, str_of(journal_kind_name(kind)));
    json_key(w, "installation");
    json_str(w, str_of(chain->installation));
    json_key(w, "epoch");
    json_i64(w, chain->epoch);
    json_key(w, "at");
    json_i64(w, chain->clock_s);
    if (chain->has_last) {
        digest_hex(&chain->last, hex);
        json_key(w, "previous");
        json_str(w, str_of(hex));
    }
}

static void end(struct journal_chain *chain, struct json_writer *w, struct buf *out)
{
    uint8_t signature[PROOF_SIGNATURE_LEN];
    json_key(w, "kid");
    json_str(w, str_of(chain->key->public.kid));
    json_close(w, '}');
    if (out->failed)
        return;
    proof_sign(chain->key, buf_str(out), signature);
    buf_addz(out, "\t");
    base64url_add(out, (struct str){(const char *)signature, sizeof signature});
    if (out->failed)
        return;
    chain->last = digest_sha256(buf_str(out));
    chain->has_last = true;
}

static void add_text(struct json_writer *w, const char *key, struct str text)
{
    if (!text.at)
        return;
    json_key(w, key);
    json_str(w, text);
}

void journal_write_erasure(struct journal_chain *chain, const struct journal_erasure *erasure, struct buf *out)
{
    struct json_writer w;
    begin(chain, JOURNAL_ERASURE, &w, out);
    add_text(&w, "customer", erasure->customer_id);
    json_key(&w, "users");
    json_raw(&w, erasure->users);
    add_text(&w, "requested_at", erasure->requested_at);
    add_text(&w, "address", erasure->address_hash);
    add_text(&w, "link", erasure->link_hash);
    add_text(&w, "keyed_address", erasure->keyed_address);
    end(chain, &w, out);
}

void journal_write_head(struct journal_chain *chain, int64_t size, const char *head_jws, struct buf *out)
{
    struct json_writer w;
    struct digest hash = digest_sha256(str_of(head_jws));
    char hex[DIGEST_HEX_LEN + 1];
    digest_hex(&hash, hex);
    begin(chain, JOURNAL_HEAD, &w, out);
    json_key(&w, "size");
    json_i64(&w, size);
    add_text(&w, "head", str_of(hex));
    end(chain, &w, out);
}

void journal_write_restore(struct journal_chain *chain, const struct digest *merged, bool merged_is_lost, int64_t lines,
                           struct buf *out)
{
    struct json_writer w;
    char hex[DIGEST_HEX_LEN + 1];
    begin(chain, JOURNAL_RESTORE, &w, out);
    if (merged) {
        digest_hex(merged, hex);
        add_text(&w, "merges", str_of(hex));
    }
    add_text(&w, "lost", str_of(merged_is_lost ? "merges" : "previous"));
    json_key(&w, "lines");
    json_i64(&w, lines);
    end(chain, &w, out);
}

/* Reading */

void journal_line_cleanup(struct journal_line *line)
{
    json_decref(line->claims);
    line->claims = NULL;
}

static enum err read_kind(const json_t *claims, enum journal_kind *ret)
{
    const char *name = json_string_value(json_object_get(claims, "kind"));
    for (int kind = 0; name && kind < JOURNAL_KINDS; kind++)
        if (strcmp(name, journal_kind_name((enum journal_kind)kind)) == 0) {
            *ret = (enum journal_kind)kind;
            return OK;
        }
    return ERR_INPUT;
}

static bool names_somebody(const json_t *claims)
{
    size_t i;
    const json_t *user, *users = json_object_get(claims, "users");
    if (!str_is_uuid(str_of(json_string_value(json_object_get(claims, "customer")))) || !json_is_array(users))
        return false;
    json_array_foreach(users, i, user) if (!str_is_uuid(str_of(json_string_value(user)))) return false;
    return true;
}

static bool read_claims(struct journal_line *line)
{
    struct str installation;
    struct str previous = str_of(json_string_value(json_object_get(line->claims, "previous")));
    line->has_previous = previous.at != NULL;
    line->epoch = json_integer_value(json_object_get(line->claims, "epoch"));
    line->written_s = json_integer_value(json_object_get(line->claims, "at"));
    return read_kind(line->claims, &line->kind) == OK && line->epoch >= 1 &&
           (!line->has_previous || digest_parse(previous, &line->previous) == OK) &&
           json_get_str(line->claims, "installation", &installation) == OK &&
           str_copy(installation, line->installation, sizeof line->installation) == OK &&
           (line->kind != JOURNAL_ERASURE || names_somebody(line->claims));
}

enum err journal_line_read(struct str text, struct journal_line *ret, struct why *why)
{
    struct str rest = text, object;
    *ret = (struct journal_line){.hash = digest_sha256(text)};
    if (!str_split(&rest, '\t', &object) || !rest.at || !(ret->claims = json_read_object(object, NULL)))
        return why_set(why, ERR_INPUT, "it is no JSON object with a signature behind it");
    int64_t version = json_integer_value(json_object_get(ret->claims, "v"));
    enum err e = version > JOURNAL_VERSION ? why_set(why, ERR_FULL, "it was written by a newer release of Reclaim")
                 : version < 1 || !read_claims(ret) ? why_set(why, ERR_INPUT, "it lacks what a line says")
                                                    : OK;
    if (e)
        journal_line_cleanup(ret);
    return e;
}

enum err journal_line_verify(struct str text, const struct proof_keys *keys, struct journal_line *line, struct why *why)
{
    struct str rest = text, object, kid;
    uint8_t signature[PROOF_SIGNATURE_LEN];
    size_t len;
    if (!str_split(&rest, '\t', &object) || base64url_read(rest, signature, sizeof signature, &len) ||
        len != sizeof signature || json_get_str(line->claims, "kid", &kid))
        return why_set(why, ERR_INPUT, "it has no signature");
    for (int i = 0; i < PROOF_GENERATIONS; i++)
        if (str_eq(kid, str_of(keys->generations[i].public.kid))) {
            line->generation = i + 1;
            return proof_holds(&keys->generations[i].public, object, signature)
                       ? OK
                       : why_set(why, ERR_INPUT, "it was changed: its signature does not hold");
        }
    return why_set(why, ERR_INPUT, "it was signed with another RECLAIM_SECRET_KEY");
}
