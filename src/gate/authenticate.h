/* Who is asking, and whether they may: tokens, API keys, and the customer behind them.
 *
 * A credential seen before is known from memory, and so is every frozen customer while the lease of that knowledge lasts
 * (gate/frozen_customers.h); everything else is asked of the database, on a worker. What cannot be known is not let in. */
#ifndef GATE_AUTHENTICATE_H
#define GATE_AUTHENTICATE_H

#include <stdatomic.h>

#include "credentials/access_keys.h"
#include "credentials/jwt.h"
#include "gate/frozen_customers.h" /* FROZEN_LEASE_NS: until then after its commit no freeze is answered */
#include "http/router.h"
#include "pg/pool.h"

struct caller {
    bool admin;           /* service_role, or app_metadata.role admin */
    bool by_key;          /* came with an API key, not with a token */
    char user_id[37];     /* the token's sub; "" for keys, and for tokens without one */
    char key_id[37];      /* of reclaim.access_keys; "" for tokens */
    char customer_id[37]; /* "": none */
    enum standing_of { CUSTOMER_NONE, CUSTOMER_ACTIVE, CUSTOMER_FROZEN, CUSTOMER_DELETED } standing;
    int64_t scheduled_us; /* while frozen: when its deletion was asked for, wall clock */
};

struct authenticator_config {
    const struct jwt_keys *tokens;   /* authenticator_set_tokens; NULL: no token is known, all are refused */
    const struct digest *key_hasher; /* hashes API keys (credentials/access_keys.h) */
};

struct authenticator;

struct authenticator *authenticator_new(const struct authenticator_config *config) MUST_CHECK;
/* The database is ready. `direct_url` is for the thread that keeps up with freezes. */
enum err authenticator_open(struct authenticator *authenticator, const char *direct_url, struct pool *pool,
                            struct why *why) MUST_CHECK;
void authenticator_free(struct authenticator *authenticator); /* after the last request and pool_stop; NULL is fine */
void authenticator_set_grace(struct authenticator *authenticator, int64_t grace_ms); /* for "deletion_effective_at" */
/* Tokens are verified with these from now on, also those that were believed before. Both sets stay until authenticator_free. */
void authenticator_set_tokens(struct authenticator *authenticator, const struct jwt_keys *tokens);

enum caller_verdict {
    CALLER_KNOWN,
    CALLER_HAS_NONE,
    CALLER_REFUSED, /* `code` and `message` say why; also those of a deleted customer */
    CALLER_UNSURE,  /* the database cannot be asked: 503 */
};

/* May lie on the stack: `answered` gets it, or its copy in the request's work. */
struct authentication {
    struct request *rq;
    struct caller caller; /* with CALLER_KNOWN */
    enum caller_verdict verdict;
    const char *code, *message; /* for the 401; constants */
    /* On the loop before authenticate returns, or later on a worker. */
    void (*answered)(struct authentication *q);
    bool from_memory; /* the database was not asked */
    /* who's: */
    struct authenticator *authenticator;
    struct job job;
    enum credential_kind kind;
    struct digest credential; /* of what was shown */
    char key_hash[DIGEST_HEX_LEN + 1];
    int64_t asked_ns, until_ns; /* from when, and for how long, the answer may be remembered */
};

/* Reads the request's credentials; on the loop. Set rq and answered before. "Authorization: Bearer" counts before
 * "X-API-Key" when both are there: a key is what a program falls back on. */
void authenticate(struct authenticator *authenticator, struct authentication *q);
/* The answers that go with it: 401, 403 DELETION_SCHEDULED, 403 NO_CUSTOMER, 503. Each sends. */
void authentication_refuse(struct request *rq, const struct authentication *q);
void authenticator_refuse_frozen(struct authenticator *authenticator, struct request *rq, const struct caller *caller);
/* The same, without sending; they return the status. */
int authentication_write_refusal(struct request *rq, const struct authentication *q);
int authenticator_write_frozen(struct authenticator *authenticator, struct request *rq, const struct caller *caller);

/* A route for people who are known: its handler is authenticate_guarded, its context a struct guarded. Whoever may not pass is answered
 * here; `handle` gets the others, on the loop or on a worker, with the body in the request's arena, and `caller` as long as
 * the request's work lasts. It must not block. */
enum {
    ADMITS_ADMIN = 1,
    ADMITS_CUSTOMER = 2, /* whoever has a customer that is not deleted */
    ADMITS_FROZEN = 4,   /* that customer may be frozen */
};
struct guarded {
    struct authenticator *authenticator;
    unsigned admits;
    void (*handle)(struct request *rq, const struct caller *caller, void *context);
    void *context;
};
void authenticate_guarded(struct request *rq);

extern const struct statement *const authenticate_statements[];
extern const size_t authenticate_statement_count;

#endif
