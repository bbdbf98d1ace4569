/* The public API: the handler of each path. */
#ifndef SERVER_ROUTES_H
#define SERVER_ROUTES_H

#include "billing/billing.h"
#include "calls/calls.h"
#include "console/console.h"
#include "customers/customers.h"
#include "erasure/cascade.h"
#include "gate/gate.h"
#include "gate/guard.h"
#include "http/router.h"
#include "mail/mailbox_http.h"
#include "pages/pages.h"
#include "recovery/cleanup.h"
#include "recovery/probe.h"
#include "sandbox/clock.h"
#include "settings/settings.h"
#include "text/sentences.h"

#define ROUTES_MAX 160

struct routes {
    struct router router;
    struct family families[5];
    struct route routes[ROUTES_MAX];
    struct guarded guarded[ROUTES_MAX];
    struct customers customers;
    struct billing billing;
    struct cascade cascade;
    struct calls calls;
    struct console console;
    _Atomic(const struct settings *) settings;
    struct probe probe;
    struct cleanup cleanup;
    struct mailbox mailbox;
    struct sandbox sandbox;
    struct signup_hook signup_hook;
};

/* What the features share; must outlive the routes. */
struct routes_needs {
    const struct orphan_statements *orphans;
    const struct digest *identifier_key;
    const struct code_keys *code_keys, *sign_in_code_keys;
    struct admission *admission;
    struct post *post;
    struct authenticator *authenticator;
    const struct digest *token_key;
    const struct digest *last_mail_key, *cooldown_key;
    const struct proof_keys *proofs;
    const struct sentences *sentences;
    bool shows_mailbox;
    struct pages *pages; /* NULL: not served */
};

/* Adds one route; before the server starts. */
void routes_add(struct routes *r, struct route route);
void routes_init(struct routes *r, const struct settings *s, const struct routes_needs *needs);
/* Stores the settings that may change while the program runs. */
void routes_configure(struct routes *r, const struct settings *s);
/* Called when the database is ready. */
enum err routes_open(struct routes *r, struct lanes *lanes, struct engine *engine) MUST_CHECK;
void routes_close(struct routes *r); /* after the last request */

#endif
