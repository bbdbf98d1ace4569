/* The sealed log: audit events of both halves, receipts and certificates as leaves of a Merkle tree (RFC 9162), in the order in which
 * the leader first sees them committed. Its heads are signed and each names the one before, so that a row changed, removed or
 * inserted afterwards does not fit any more. Leaves are hashes of columns that never change. Statements here use PostgreSQL's own
 * functions only: whoever may change Reclaim's functions shall not change what is sealed or verified.
 *
 *   struct sealed_log log;
 *   sealed_log_begin(&log, &terms, tx, arena)   locks the log and appends the rows that are not in it yet
 *   sealed_log_add(&log, leaf)                  further leaves, whose rows the caller writes
 *   sealed_log_close(&log)                      signs the new head
 *   sealed_log_writes(&log, calls)              what the caller commits with its own rows
 */
#ifndef PROOF_SEALED_LOG_H
#define PROOF_SEALED_LOG_H

#include "base/arena.h"
#include "pg/tx.h"
#include "proof/merkle.h"
#include "proof/proof_key.h"

#define SEALED_HEAD_MAX 1024 /* a head as a compact JWS */
#define SEALED_LOG_WRITES 2
#define INSTALLATION_ID_LEN 32

/* What a signed head says. */
struct sealed_head {
    int64_t size, epoch, signed_s, retention_s, xmax;
    int64_t lasting;            /* of its leaves: receipts and certificates, whose rows retention does not remove */
    struct digest root, former; /* former: SHA-256 of the head before, as a compact JWS */
    bool has_former;
    char installation[INSTALLATION_ID_LEN + 1];
};

enum err sealed_head_read(struct str jws, const struct proof_key_set *set, struct sealed_head *ret,
                          struct why *why) MUST_CHECK;

/* Tells installations with the same key apart: by when the row of reclaim.installation was made, in microseconds. */
void installation_name(const struct proof_keys *keys, struct str created, char ret[INSTALLATION_ID_LEN + 1]);

struct sealed_log_terms {
    const struct proof_keys *keys;
    _Atomic int64_t retention_ms; /* of audit rows: older ones may be gone */
};

/* The last row of each source that a run has sealed, so that a backlog is read once. Rows may be committed later than those with greater
 * ids: each run begins with zeros, and finds them. */
struct sealed_up_to {
    int64_t customer, cleanup, receipt;
    char matured
        [128]; /* sources of whose rows, up to their marks, none came after the first round; "": this is the first */
};

struct sealed_log {
    struct arena *arena;
    const struct proof_key *key;
    struct merkle_frontier before, after;
    struct merkle_batch *batch; /* from sealed_log_close() on */
    struct digest *leaves;
    size_t count, room;
    size_t facts;    /* of these leaves: rows that sealed_log_begin() found; their leaves are written */
    int64_t lasting; /* receipts among them, and receipts and certificates before */
    bool more;       /* there were more rows than it takes at once */
    char installation[INSTALLATION_ID_LEN + 1];
    int64_t epoch, retention_s, xmax, clock_s;
    char head[SEALED_HEAD_MAX], former[SEALED_HEAD_MAX]; /* "": none */
    struct digest root;
    /* What sealed_log_writes() sends: */
    char *frontier;
    const char *matured;
};

#define SEALED_LOG_ROWS 10000 /* of each table at once */

/* ERR_INPUT: the last head is not what this installation signed, or does not fit the tree; logged. */
enum err sealed_log_begin(struct sealed_log *log, const struct sealed_log_terms *terms, struct tx *tx,
                          struct arena *arena, size_t room, struct sealed_up_to *up_to) MUST_CHECK;
/* Its position in the log. At most `room` of them. */
int64_t sealed_log_add(struct sealed_log *log, const struct digest *leaf);
/* Nothing to do when there is no leaf: log->count is 0. */
enum err sealed_log_close(struct sealed_log *log) MUST_CHECK;
size_t sealed_log_writes(struct sealed_log *log, struct pg_call *calls);
/* Leaves of rows that the caller inserts: $1 positions $2 ids $3 hashes in hex. */
extern const struct statement sealed_log_add_certificates;

extern const struct statement *const sealed_log_statements[];
extern const size_t sealed_log_statement_count;

#endif
