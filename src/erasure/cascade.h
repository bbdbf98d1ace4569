/* The cascade: every participant that keeps data of a deleted customer erases it and gives a receipt. Tables of this database
 * are erased by erasure/eraser.h; remote participants report over HTTP or RabbitMQ. */
#ifndef ERASURE_CASCADE_H
#define ERASURE_CASCADE_H

#include "events/receipt.h"
#include "gate/guard.h"
#include "proof/proof_key.h"

/* Stores the receipt of a remote participant; repeats change nothing. ERR_MISSING: no such erasure, or
 * the participant has no part in it. `rows` below 0: not given. `error` may be NULL. */
enum receipt_reporter { REPORTED_BY_SERVICE, REPORTED_BY_ADMINISTRATOR };
enum err cascade_receive(struct pg *pg, const char *customer_id, const char *participant, bool done, int64_t rows,
                         const char *error, enum receipt_reporter by, int64_t deadline_ns);

struct cascade {
    struct authenticator *authenticator;
    _Atomic(struct pool *) pool;      /* NULL until the database is ready */
    _Atomic(struct pool *) anonymous; /* the same, for requests of anyone */
    int64_t backup_retention_ms;
    const struct proof_keys *proofs;
    bool has_pages; /* a browser that opens the link of the last mail is sent to a page */
};

/* GET /v1/erasure/participants: what every deletion erases and keeps; anyone may ask. */
void erasure_participants_handle(struct request *rq);

/* Behind authenticate_guarded: */
void erasure_show_handle(struct request *rq, const struct caller *caller, void *cascade);    /* GET …/{id}/erasure */
void erasure_receipt_handle(struct request *rq, const struct caller *caller, void *cascade); /* POST …/{participant} */
/* The same with ?secret= for whoever has the last mail (guarded.without): */
bool erasure_by_link(struct request *rq, void *cascade);

/* GET …/{id}/certificate: guarded, or by the same link. */
void certificate_show_handle(struct request *rq, const struct caller *caller, void *cascade);
bool certificate_by_link(struct request *rq, void *cascade);
/* GET /.well-known/reclaim-erasure-key: the public keys that verify certificates. */
void certificate_keys_handle(struct request *rq);

bool participant_name_is_sound(struct str name);

extern const struct statement
    cascade_add; /* $1 name $2 table $3 column $4 soft $5 scrub $6 page $7 past $8 by $9 label → lack; nulls for a remote one */
extern const struct statement cascade_preset; /* $1 preset $2 past → name table_name lack */
extern const struct statement cascade_switch; /* $1 name $2 disable, enable or remove $3 why or null → lack */
extern const struct statement cascade_rescan; /* $1 customer or null → customers */
extern const struct statement
    cascade_list; /* → name kind table_name customer_column soft page enabled lack id_of label emptied kept bucket prefix */
extern const struct statement cascade_status;   /* → participant pending failed done rows oldest error kept */
extern const struct statement cascade_overview; /* → overview, {"items":[…]} */
extern const struct statement cascade_ledger;   /* $1 customer → ledger; null when there is no such customer */
extern const struct statement cascade_preview;  /* $1 customer $2 most → preview */
extern const struct statement cascade_redrive;  /* $1 customer or null $2 participant or null → receipts */
extern const struct statement cascade_public;   /* $1 seconds that backups exist → answer */

extern const struct statement
    erasure_read_by_link; /* $1 customer $2 hash of the link's secret → ledger without errors; no row: another secret */
extern const struct statement certificate_read; /* $1 customer $2 hash of the link's secret or null → known jws */
extern const struct statement certificate_generation; /* → generation */

extern const struct statement *const cascade_statements[];
extern const size_t cascade_statement_count;

#endif
