/* A line of the journal: a JSON object, a tab, and an Ed25519 signature of the object in base64url.
 *
 *   {"v":1,"kind":"erasure",…,"previous":"…","kid":"…"}<tab>signature
 *
 * Each line names the hash of the line before it, so that one signature covers everything up to it. Lines are of three kinds:
 * an erasure (who was erased), a head of the sealed log, and the end of a replay after a restore. */
#ifndef PROOF_JOURNAL_LINE_H
#define PROOF_JOURNAL_LINE_H

#include "base/json.h"
#include "proof/proof_key.h"
#include "proof/sealed_log.h"

#define JOURNAL_VERSION 1
#define JOURNAL_LINE_MAX ((size_t)16 * 1024 * 1024) /* a customer may have many members: 400,000 of them */

enum journal_kind { JOURNAL_ERASURE, JOURNAL_HEAD, JOURNAL_RESTORE, JOURNAL_KINDS };
const char *journal_kind_name(enum journal_kind kind);

/* The lines of one chain, as they are written. */
struct journal_chain {
    const struct proof_key *key;
    const char *installation;
    int64_t epoch, clock_s;
    struct digest last; /* of the line before the next one */
    bool has_last;
};

/* Who was erased. Texts are absent where nothing is known. */
struct journal_erasure {
    struct str customer_id, users; /* users: a JSON array of UUIDs */
    struct str requested_at;
    struct str address_hash, link_hash; /* as in reclaim.erasures */
    struct str keyed_address;           /* HMAC of the address, which only this installation can compute */
};

/* Each adds a line without its end to `out`, which was empty, and returns its hash in chain->last. */
void journal_write_erasure(struct journal_chain *chain, const struct journal_erasure *erasure, struct buf *out);
void journal_write_head(struct journal_chain *chain, int64_t size, const char *head_jws, struct buf *out);
/* After a restore the lines fork: `merged` is the last one of the other branch; NULL: there is none. The
 * branch that the database lacked is the one that ends with it, or with the line before this one. */
void journal_write_restore(struct journal_chain *chain, const struct digest *merged, bool merged_is_lost, int64_t lines,
                           struct buf *out);

struct journal_line {
    enum journal_kind kind;
    struct digest hash, previous;
    bool has_previous;
    int64_t epoch, written_s;
    int generation; /* of the key that signed it */
    char installation[INSTALLATION_ID_LEN + 1];
    json_t *claims; /* journal_line_cleanup() drops it */
};
void journal_line_cleanup(struct journal_line *line);

/* Everything but the signature. ERR_INPUT, with the reason, for what is not a line; ERR_FULL: of a newer release. */
enum err journal_line_read(struct str text, struct journal_line *ret, struct why *why) MUST_CHECK;
/* Any generation of the keys may have signed it, also one that a restored database does not know yet. */
enum err journal_line_verify(struct str text, const struct proof_keys *keys, struct journal_line *line,
                             struct why *why) MUST_CHECK;

#endif
