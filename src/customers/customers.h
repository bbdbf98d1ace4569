/* Customers over HTTP: signing in, asking for deletion, recovering, and what admins may do. */
#ifndef CUSTOMERS_CUSTOMERS_H
#define CUSTOMERS_CUSTOMERS_H

#include "credentials/webhook_signature.h"
#include "customers/expiry.h"
#include "gate/authenticate.h"
#include "limits/admission.h"
#include "mail/mail.h"
#include "pg/lanes.h"

struct code_keys;
struct verifier;

struct customers {
    struct authenticator *authenticator;
    struct admission *admission;
    const struct digest *identifier_key; /* hashes addresses and clients for the limits */
    const struct digest *token_key;      /* signs the tokens of login */
    const struct code_keys *code_keys;   /* of sign-in codes */
    struct post *post;
    const struct digest *last_mail_key; /* seals the address of the last mail (customers/last_mail.h) */
    const struct digest *cooldown_key;  /* hashes addresses that cool down (customers/cooldown.h) */
    _Atomic int64_t cooldown_ms;        /* RECLAIM_COOLDOWN, for the hook and the last mail; less than 1: off */
    _Atomic(struct lanes *) lanes;      /* NULL until the database is ready */
    struct engine *engine;
    struct verifier *verifier;
    bool strict_proof; /* RECLAIM_PROOF: without a password a mailed code proves a deletion, not the phrase */
    _Atomic int64_t decoy_due_ns; /* when to look again which cost most passwords have */
};

/* The database and the work engine are ready. */
enum err customers_open(struct customers *context, struct lanes *lanes, struct engine *engine) MUST_CHECK;
void customers_close(struct customers *context); /* after the last request */

/* What Supabase Auth asks before it creates a user. */
struct signup_hook {
    struct customers *customers;
    struct webhook_secrets secrets; /* none: the hook is not in use */
    struct str refusal;             /* the sentence for whoever signs up */
};
void before_user_created_handle(
    struct request *rq); /* POST /hooks/before-user-created; its context is a struct signup_hook */

/* Anyone may ask; the route's context is a struct customers: */
void login_handle(struct request *rq);        /* POST /auth/login */
void sign_in_code_handle(struct request *rq); /* POST /auth/code; held */
void logout_handle(struct request *rq);       /* POST /auth/logout, with a session */
void own_session_handle(struct request *rq);  /* GET /auth/session, with a user's token */

/* Behind authenticate_guarded: */
void unregister_handle(struct request *rq, const struct caller *caller, void *customers);  /* POST /auth/unregister */
void recover_own_handle(struct request *rq, const struct caller *caller, void *customers); /* DELETE /auth/unregister */
void customer_show_handle(struct request *rq, const struct caller *caller, void *customers);
void customers_list_handle(struct request *rq, const struct caller *caller, void *customers);
void customer_create_handle(struct request *rq, const struct caller *caller, void *customers);
void members_list_handle(struct request *rq, const struct caller *caller, void *customers);
void member_add_handle(struct request *rq, const struct caller *caller, void *customers);
void member_remove_handle(struct request *rq, const struct caller *caller, void *customers);
void customer_freeze_handle(struct request *rq, const struct caller *caller, void *customers);
void customer_recover_handle(struct request *rq, const struct caller *caller, void *customers);
void customer_delete_handle(struct request *rq, const struct caller *caller, void *customers);
void customer_legal_hold_handle(struct request *rq, const struct caller *caller, void *customers);
void customer_legal_unhold_handle(struct request *rq, const struct caller *caller, void *customers);

/* Shared by the handlers: */
struct actor actor_of(struct request *rq, const struct caller *caller);
struct pool *customers_pool(struct customers *context, enum lane lane);
/* By the settings in force. */
struct deletion_terms customers_deletion_terms(const struct customers *context);

/* The mails about customers, for mail_settings.features. */
struct mail_templates customers_mails(struct customers *context);
/* Deletes audit rows, and what became of mails, older than that. */
enum err customers_prune(struct pg *pg, int64_t retention_ms, int64_t deadline_ns) MUST_CHECK;
/* Deletes sessions that expired over a day ago, and sign-in codes. */
enum err sessions_prune(struct pg *pg, int64_t deadline_ns) MUST_CHECK;

extern const struct statement customer_show_to_admin; /* $1 id → object */
extern const struct statement *const customers_statements[], *const sessions_statements[], *const sign_in_statements[];
extern const size_t customers_statement_count, sessions_statement_count, sign_in_statement_count;

#endif
