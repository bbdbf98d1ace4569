/* Authenticates requests by token or API key, and finds the customer that the credential belongs to.
 *
 * Answers from the credential cache and the set of frozen customers while the lease on that set is valid
 * (gate/frozen_customers.h); otherwise a worker asks the database. If neither can answer, the request is refused. */
#ifndef GATE_AUTHENTICATE_H
#define GATE_AUTHENTICATE_H

#include <stdatomic.h>

#include "credentials/access_keys.h"
#include "credentials/jwt.h"
#include "gate/frozen_customers.h" /* FROZEN_LEASE_NS: the reply to a freeze is delayed by it */
#include "http/router.h"
#include "pg/pool.h"

struct caller {
    bool admin;           /* service_role, or app_metadata.role admin */
    bool by_key;          /* came with an API key, not with a token */
    char user_id[37];     /* the token's sub; "" for API keys and tokens without sub */
    char key_id[37];      /* reclaim.access_keys.id; "" for tokens */
    char customer_id[37]; /* "" without a customer */
    enum standing_of { STANDING_NONE, STANDING_ACTIVE, STANDING_FROZEN, STANDING_DELETED } standing;
    int64_t scheduled_us; /* if frozen: when the deletion was requested, wall clock */
};

struct authenticator_config {
    const struct jwt_keys *tokens;   /* see authenticator_set_tokens(); NULL: every token is refused */
    const struct digest *key_hasher; /* hashes API keys (credentials/access_keys.h) */
};

struct authenticator;

struct authenticator *authenticator_new(const struct authenticator_config *config) MUST_CHECK;
/* Call once the database is ready. `direct_url` is for the thread that reads customer changes. */
enum err authenticator_open(struct authenticator *authenticator, const char *direct_url, struct pool *pool,
                            struct why *why) MUST_CHECK;
void authenticator_free(struct authenticator *authenticator); /* after the last request and pool_stop; NULL is fine */
void authenticator_set_grace(struct authenticator *authenticator, int64_t grace_ms); /* for "deletion_effective_at" */
/* Replaces the keys for tokens. Tokens accepted before are verified again. Both sets must stay valid until
 * authenticator_free(). */
void authenticator_set_tokens(struct authenticator *authenticator, const struct jwt_keys *tokens);

enum caller_verdict {
    CALLER_KNOWN,
    CALLER_HAS_NONE,
    CALLER_REFUSED, /* see `code` and `message`; includes credentials of a deleted customer */
    CALLER_UNSURE,  /* the database is not reachable: 503 */
};

/* May be on the stack: `answered` is passed it, or its copy in the request's work. */
struct authentication {
    struct request *rq;
    struct caller caller; /* with CALLER_KNOWN */
    enum caller_verdict verdict;
    const char *code, *message; /* for the 401; constants */
    /* Called on the loop before authenticate() returns, or later on a worker. */
    void (*answered)(struct authentication *q);
    bool from_memory; /* the database was not asked */
    /* Private to authenticate.c: */
    struct authenticator *authenticator;
    struct job job;
    enum credential_kind kind;
    struct digest credential; /* of the token or API key */
    char key_hash[DIGEST_HEX_LEN + 1];
    int64_t asked_ns, until_ns; /* start of the look-up; end of the cache entry */
};

/* Reads the request's credentials; on the loop. Set rq and answered before. "Authorization: Bearer" takes
 * precedence over "X-API-Key". */
void authenticate(struct authenticator *authenticator, struct authentication *q);
/* Send the refusal: 401, 403 DELETION_SCHEDULED, 403 NO_CUSTOMER or 503. */
void authentication_refuse(struct request *rq, const struct authentication *q);
void authenticator_refuse_frozen(struct authenticator *authenticator, struct request *rq, const struct caller *caller);
/* Write the refusal without sending it; return its status. */
int authentication_write_refusal(struct request *rq, const struct authentication *q);
int authenticator_write_frozen(struct authenticator *authenticator, struct request *rq, const struct caller *caller);

/* A route that requires credentials: its handler is authenticate_guarded(), its context a struct guarded. Refusals
 * are sent here. Otherwise `handle` is called, on the loop or on a worker, with the body in the request's arena and
 * a `caller` that is valid as long as the request's work. It must not block. */
enum {
    ADMITS_ADMIN = 1,
    ADMITS_CUSTOMER = 2, /* any caller with a customer that is not deleted */
    ADMITS_FROZEN = 4,   /* also if that customer is frozen */
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
