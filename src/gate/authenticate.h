/* Authenticates requests by token or API key, and finds the customer that the credential belongs to.
 *
 * Answers from the credential cache and the set of frozen customers while the lease on that set is valid
 * (gate/frozen_customers.h); otherwise a worker asks the database. If neither can answer, the request is refused. */
#ifndef GATE_AUTHENTICATE_H
#define GATE_AUTHENTICATE_H

#include <stdatomic.h>

#include "credentials/access_keys.h"
#include "credentials/key_reader.h"
#include "gate/frozen_customers.h" /* FROZEN_LEASE_NS: the reply to a freeze is delayed by it */
#include "http/router.h"
#include "pg/lanes.h"

struct caller {
    bool admin;           /* service_role, app_metadata.role admin, or a key of scope admin */
    bool by_key;          /* came with an API key, not with a token */
    bool is_owner;        /* of the customer; false for its members, and for keys */
    bool has_several;     /* further customers that are not deleted, and the request does not choose one */
    enum key_scope scope; /* of a key; SCOPE_CUSTOMER for tokens */
    char participant[KEY_PARTICIPANT_MAX + 1]; /* with SCOPE_RECEIPTS */
    char user_id[37];                          /* the token's sub; "" for API keys and tokens without sub */
    char session[37];                          /* the token's session; "" without one */
    char key_id[37];                           /* reclaim.access_keys.id; "" for tokens */
    char customer_id[37];                      /* "" without a customer */
    enum standing_of { STANDING_NONE, STANDING_ACTIVE, STANDING_FROZEN, STANDING_DELETED } standing;
    struct freeze freeze; /* if frozen */
};

/* Whether a caller may read what is kept of this customer. */
bool caller_sees(const struct caller *caller, const char *customer_id);
bool caller_sees_all(const struct caller *caller); /* admins, and keys of scope read */

struct authenticator_config {
    struct key_ring *tokens; /* verifies tokens; stays valid until authenticator_free() */
    bool reads_keys;         /* authenticator_open() gets a reader; until then unknown keys are no reason to refuse */
    const struct digest *key_hasher; /* hashes API keys (credentials/access_keys.h) */
};

struct authenticator;

struct authenticator *authenticator_new(const struct authenticator_config *config) MUST_CHECK;
/* Call once the database is ready. `direct_url` is for the thread that reads customer changes, which also
 * reports the pulse. `reader` is asked about tokens with unknown keys. */
enum err authenticator_open(struct authenticator *authenticator, const char *direct_url, struct lanes *lanes,
                            struct pg_pulse *pulse, struct key_reader *reader, struct why *why) MUST_CHECK;
void authenticator_free(struct authenticator *authenticator); /* after the last request and pool_stop; NULL is fine */
/* How old this instance's set of frozen customers is, in milliseconds; -1 before the first read. */
int64_t authenticator_lag_ms(struct authenticator *authenticator);

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
    bool skips_cache;         /* set before: the database is asked in any case */
    bool from_memory;         /* the database was not asked */
    bool chooses;             /* X-Reclaim-Customer was sent */
    bool choice_is_malformed; /* it is not a UUID: the caller is without a customer */
    /* Private to authenticate.c: */
    struct authenticator *authenticator;
    struct job job;
    char choice[37]; /* the customer in X-Reclaim-Customer */
    enum credential_kind kind;
    struct digest credential; /* of the token or API key, and of the choice */
    char key_hash[DIGEST_HEX_LEN + 1];
    bool session_ended;
    int64_t asked_ns, until_ns;       /* start of the look-up; end of the cache entry */
    int64_t user_until_ns;            /* end of the entry of the token's user */
    struct second_credential *second; /* NULL: there is one credential only */
};

/* Reads the request's credentials; on the loop. Set rq and answered before. A bearer that begins as API keys do is one.
 * With "Authorization: Bearer" and "X-API-Key" both must be good and mean the same; the caller is that of the bearer. */
void authenticate(struct authenticator *authenticator, struct authentication *q);
/* Send the refusal: 401, 403 DELETION_SCHEDULED, 403 NO_CUSTOMER or 503. */
void authentication_refuse(struct request *rq, const struct authentication *q);
void authenticator_refuse_frozen(struct authenticator *authenticator, struct request *rq, const struct caller *caller);
/* Write the refusal without sending it; return its status. */
int authentication_write_refusal(struct request *rq, const struct authentication *q);
int authenticator_write_frozen(struct authenticator *authenticator, struct request *rq, const struct caller *caller);

extern const struct statement *const look_up_statements[];
extern const size_t look_up_statement_count;

#endif
