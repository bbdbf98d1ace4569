#include "server/routes.h"

#include "base/embedded.h"
#include "server/settings_http.h"
#include "server/test_hooks.h"

#define HOOK_BODY_MAX ((size_t)64 * 1024) /* a user with the data that it signs up with */

static void openapi(struct request *rq)
{
    const struct embedded *description = embedded_find("openapi/openapi.json");
    if (!description) {
        refuse_by_status(rq, 404);
        reply_send(rq, 404);
        return;
    }
    reply_header(rq, "Access-Control-Allow-Origin", "*");
    reply_body(rq, "application/json", description->bytes);
    reply_send(rq, 200);
}

void routes_add(struct routes *r, struct route route)
{
    r->routes[r->router.route_count++] = route;
}

/* A route for authenticated callers. */
static void add_guarded(struct routes *r, const struct routes_needs *needs, enum method method, const char *path,
                        unsigned admits, void (*handle)(struct request *, const struct caller *, void *), void *context)
{
    struct guarded *guarded = &r->guarded[r->router.route_count];
    *guarded = (struct guarded){needs->authenticator, admits, handle, context, NULL};
    routes_add(r, (struct route){.method = method, .path = path, .handle = authenticate_guarded, .context = guarded});
}

/* The last route added deletes, charges or mails: after a restore it waits until erasures are replayed. */
static void wait_for_replay(struct routes *r)
{
    r->routes[r->router.route_count - 1].waits_for_replay = true;
}

/* Who reaches what: tests/service/scopes.test.js has the same once more, and asks with a key of each scope. */
#define SELF (ADMITS_CUSTOMER | ADMITS_FROZEN)
#define OWNER (SELF | ADMITS_OWNER_ONLY)
#define ADMIN_READS (ADMITS_ADMIN | ADMITS_READ)

static void add_customers(struct routes *r, const struct routes_needs *needs)
{
    struct customers *context = &r->customers;
    routes_add(
        r, (struct route){.method = METHOD_POST, .path = "/auth/login", .handle = login_handle, .context = context});
    routes_add(r, (struct route){.method = METHOD_POST,
                                 .path = "/auth/code",
                                 .handle = sign_in_code_handle,
                                 .context = context,
                                 .hold = &r->cleanup.hold});
    wait_for_replay(r);
    routes_add(
        r, (struct route){.method = METHOD_POST, .path = "/auth/logout", .handle = logout_handle, .context = context});
    routes_add(r, (struct route){
                      .method = METHOD_GET, .path = "/auth/session", .handle = own_session_handle, .context = context});
    add_guarded(r, needs, METHOD_POST, "/auth/unregister", OWNER, unregister_handle, context);
    wait_for_replay(r);
    add_guarded(r, needs, METHOD_DELETE, "/auth/unregister", OWNER, recover_own_handle, context);
    add_guarded(r, needs, METHOD_GET, "/v1/customers", ADMIN_READS, customers_list_handle, context);
    add_guarded(r, needs, METHOD_POST, "/v1/customers", ADMITS_ADMIN, customer_create_handle, context);
    add_guarded(r, needs, METHOD_GET, "/v1/customers/{id}/members", ADMIN_READS, members_list_handle, context);
    add_guarded(r, needs, METHOD_POST, "/v1/customers/{id}/members", ADMITS_ADMIN, member_add_handle, context);
    add_guarded(r, needs, METHOD_DELETE, "/v1/customers/{id}/members/{user_id}", ADMITS_ADMIN, member_remove_handle,
                context);
    add_guarded(r, needs, METHOD_GET, "/v1/customers/{id}", ADMIN_READS | SELF, customer_show_handle, context);
    add_guarded(r, needs, METHOD_POST, "/v1/customers/{id}/freeze", ADMITS_ADMIN, customer_freeze_handle, context);
    add_guarded(r, needs, METHOD_POST, "/v1/customers/{id}/recover", ADMITS_ADMIN, customer_recover_handle, context);
    add_guarded(r, needs, METHOD_DELETE, "/v1/customers/{id}", ADMITS_ADMIN, customer_delete_handle, context);
    wait_for_replay(r);
    add_guarded(r, needs, METHOD_POST, "/v1/customers/{id}/hold", ADMITS_ADMIN, customer_legal_hold_handle, context);
    add_guarded(r, needs, METHOD_DELETE, "/v1/customers/{id}/hold", ADMITS_ADMIN, customer_legal_unhold_handle,
                context);
}

static void add_cascade(struct routes *r, const struct routes_needs *needs)
{
    struct cascade *context = &r->cascade;
    routes_add(r, (struct route){.method = METHOD_GET,
                                 .path = "/v1/erasure/participants",
                                 .handle = erasure_participants_handle,
                                 .context = context});
    add_guarded(r, needs, METHOD_GET, "/v1/customers/{id}/erasure", ADMIN_READS | SELF, erasure_show_handle, context);
    r->guarded[r->router.route_count - 1].without = erasure_by_link;
    add_guarded(r, needs, METHOD_GET, "/v1/customers/{id}/certificate", ADMIN_READS | SELF, certificate_show_handle,
                context);
    r->guarded[r->router.route_count - 1].without = certificate_by_link;
    routes_add(r, (struct route){.method = METHOD_GET,
                                 .path = "/.well-known/reclaim-erasure-key",
                                 .handle = certificate_keys_handle,
                                 .context = context});
    add_guarded(r, needs, METHOD_POST, "/v1/customers/{id}/erasure/{participant}", ADMITS_ADMIN | ADMITS_RECEIPTS,
                erasure_receipt_handle, context);
}

static void add_billing(struct routes *r, const struct routes_needs *needs)
{
    struct billing *context = &r->billing;
    add_guarded(r, needs, METHOD_POST, "/v1/billing/charges", ADMITS_ADMIN | ADMITS_BILLING, charge_handle, context);
    wait_for_replay(r);
    add_guarded(r, needs, METHOD_GET, "/v1/billing/charges", ADMIN_READS | ADMITS_BILLING, charges_list_handle,
                context);
    add_guarded(r, needs, METHOD_GET, "/v1/billing/accounts", ADMIN_READS | ADMITS_BILLING, accounts_list_handle,
                context);
    add_guarded(r, needs, METHOD_GET, "/v1/billing/accounts/{id}", ADMIN_READS | ADMITS_BILLING, account_show_handle,
                context);
    add_guarded(r, needs, METHOD_DELETE, "/v1/billing/accounts/{id}", ADMITS_ADMIN | ADMITS_BILLING,
                account_delete_handle, context);
    wait_for_replay(r);
    add_guarded(r, needs, METHOD_GET, "/v1/billing/accounts/{id}/valid-balance", ADMIN_READS | ADMITS_BILLING,
                valid_balance_handle, context);
    add_guarded(r, needs, METHOD_POST, "/v1/billing/accounts/{id}/adjustments", ADMITS_ADMIN | ADMITS_BILLING,
                adjust_handle, context);
    wait_for_replay(r);
    add_guarded(r, needs, METHOD_GET, "/v1/billing/accounts/{id}/adjustments", ADMIN_READS | ADMITS_BILLING,
                adjustments_list_handle, context);
    add_guarded(r, needs, METHOD_GET, "/v1/billing/subscriptions", ADMIN_READS | ADMITS_BILLING,
                subscriptions_list_handle, context);
    add_guarded(r, needs, METHOD_POST, "/v1/billing/subscriptions", ADMITS_ADMIN | ADMITS_BILLING, subscribe_handle,
                context);
    wait_for_replay(r);
    add_guarded(r, needs, METHOD_GET, "/v1/billing/subscriptions/{id}", ADMIN_READS | ADMITS_BILLING,
                subscription_show_handle, context);
    add_guarded(r, needs, METHOD_DELETE, "/v1/billing/subscriptions/{id}", ADMITS_ADMIN | ADMITS_BILLING,
                unsubscribe_handle, context);
}

static void add_calls(struct routes *r, const struct routes_needs *needs)
{
    struct calls *context = &r->calls;
    add_guarded(r, needs, METHOD_POST, "/v1/calls", ADMITS_ADMIN | ADMITS_CALLS, call_begin_handle, context);
    add_guarded(r, needs, METHOD_GET, "/v1/calls", ADMIN_READS | ADMITS_CALLS, calls_list_handle, context);
    add_guarded(r, needs, METHOD_GET, "/v1/calls/{id}", ADMIN_READS | ADMITS_CALLS, call_show_handle, context);
    add_guarded(r, needs, METHOD_POST, "/v1/calls/{id}/progress", ADMITS_ADMIN | ADMITS_CALLS, call_progress_handle,
                context);
    add_guarded(r, needs, METHOD_POST, "/v1/calls/{id}/hangup", ADMITS_ADMIN | ADMITS_CALLS, call_hangup_handle,
                context);
}

static void add_console(struct routes *r, const struct routes_needs *needs)
{
    struct console *context = &r->console;
    add_guarded(r, needs, METHOD_GET, "/v1/stats", ADMIN_READS, stats_handle, context);
    add_guarded(r, needs, METHOD_GET, "/v1/audit", ADMIN_READS, audit_handle, context);
    add_guarded(r, needs, METHOD_GET, "/v1/customers/{id}/timeline", ADMIN_READS, timeline_handle, context);
    add_guarded(r, needs, METHOD_GET, "/v1/limits/{key}", ADMIN_READS, limits_show_handle, context);
    add_guarded(r, needs, METHOD_DELETE, "/v1/limits/{key}", ADMITS_ADMIN, limits_reset_handle, context);
    add_guarded(r, needs, METHOD_GET, "/v1/orphans", ADMIN_READS, orphans_handle, context);
    add_guarded(r, needs, METHOD_GET, "/v1/events/dead", ADMIN_READS, dead_letters_handle, context);
    add_guarded(r, needs, METHOD_POST, "/v1/events/dead/{id}/redrive", ADMITS_ADMIN, dead_redrive_handle, context);
    add_guarded(r, needs, METHOD_GET, "/v1/participants", ADMIN_READS, participants_handle, context);
    add_guarded(r, needs, METHOD_POST, "/v1/console/sessions", ADMIN_READS, session_begin_handle, context);
    add_guarded(r, needs, METHOD_DELETE, "/v1/console/sessions", ADMIN_READS, sessions_end_handle, context);
    add_guarded(r, needs, METHOD_GET, "/v1/console/sessions/{id}", ADMIN_READS, session_show_handle, context);
    add_guarded(r, needs, METHOD_DELETE, "/v1/console/sessions/{id}", ADMIN_READS, session_end_handle, context);
    add_guarded(r, needs, METHOD_POST, "/v1/console/reveals", ADMIN_READS, reveal_handle, context);
    add_guarded(r, needs, METHOD_GET, "/v1/settings", ADMIN_READS, settings_handle, &r->settings);
}

/* The secrets were checked when the settings were read. */
static void add_hooks(struct routes *r, const struct settings *s, const struct routes_needs *needs)
{
    r->signup_hook = (struct signup_hook){.customers = &r->customers,
                                          .refusal = sentence(needs->sentences, s->language, TEXT_HOOK_REFUSED)};
    if (s->hook_secret && webhook_secrets_read(str_of(s->hook_secret), &r->signup_hook.secrets))
        r->signup_hook.secrets.count = 0;
    routes_add(r, (struct route){.method = METHOD_POST,
                                 .path = "/hooks/before-user-created",
                                 .body_max = HOOK_BODY_MAX,
                                 .handle = before_user_created_handle,
                                 .context = &r->signup_hook});
}

static void add_pages(struct routes *r, struct pages *pages)
{
    const struct route *page;
    for (size_t i = 0; pages && (page = pages_route(i)); i++) {
        routes_add(r, *page);
        r->routes[r->router.route_count - 1].context = pages;
    }
}

static void add_sandbox(struct routes *r, const struct routes_needs *needs)
{
    add_guarded(r, needs, METHOD_GET, "/v1/sandbox/clock", ADMIN_READS, clock_show_handle, &r->sandbox);
    add_guarded(r, needs, METHOD_POST, "/v1/sandbox/clock", ADMITS_ADMIN, clock_advance_handle, &r->sandbox);
    add_guarded(r, needs, METHOD_DELETE, "/v1/sandbox/clock", ADMITS_ADMIN, clock_reset_handle, &r->sandbox);
}

static void furnish(struct routes *r, const struct contract *contract, const struct settings *s,
                    const struct routes_needs *needs)
{
    r->probe.contract = r->cleanup.contract = contract;
    r->probe.orphans = r->cleanup.orphans = needs->orphans;
    r->probe.identifier_key = r->cleanup.identifier_key = needs->identifier_key;
    r->probe.admission = r->cleanup.admission = needs->admission;
    r->cleanup.code_keys = needs->code_keys;
    r->cleanup.post = needs->post;
    r->customers.authenticator = needs->authenticator;
    r->customers.admission = needs->admission;
    r->customers.identifier_key = needs->identifier_key;
    r->customers.token_key = needs->token_key;
    r->customers.code_keys = needs->sign_in_code_keys;
    r->customers.post = needs->post;
    r->customers.last_mail_key = needs->last_mail_key;
    r->customers.cooldown_key = needs->cooldown_key;
    r->customers.strict_proof = s->proof == PROOF_STRICT;
    r->cascade.authenticator = needs->authenticator;
    r->cascade.proofs = needs->proofs;
    r->cascade.backup_retention_ms = s->backup_retention_ms;
    r->cascade.has_pages = needs->pages != NULL;
    r->calls.authenticator = needs->authenticator;
    r->console.authenticator = needs->authenticator;
    r->console.admission = needs->admission;
    r->console.identifier_key = needs->identifier_key;
    r->console.orphans = needs->orphans;
    rates_init(&r->console.rates);
    rates_init(&r->console.refusals);
    r->cleanup.uniform = s->enumeration == ENUMERATION_UNIFORM;
}

/* RECLAIM_PROBE=off. The route stays, so that a page's preflight is answered and it can read the 404. */
static void not_served(struct request *rq)
{
    rq->family->refuse(rq, 404);
    reply_send(rq, 404);
}

void routes_init(struct routes *r, const struct settings *s, const struct routes_needs *needs)
{
    const struct contract *contract =
        s->contract == CONTRACT_CLEANUP_V1 ? &contract_cleanup_v1 : &contract_registration_recovery;
    furnish(r, contract, s, needs);
    r->families[0] = (struct family){
        .prefix = "/functions/v1/", .cors = true, .refuse = contract_family_refuse, .context = contract};
    r->families[1] = (struct family){.prefix = "/auth/", .cors = true, .refuse = refuse_by_status};
    r->families[2] = (struct family){.prefix = "/v1/", .cors = true, .refuse = refuse_by_status};
    r->families[3] = (struct family){.prefix = "/hooks/", .refuse = refuse_by_status};
    r->families[4] = (struct family){
        .prefix = "/", .refuse = needs->pages ? pages_refuse : refuse_by_status, .context = needs->pages};
    r->router = (struct router){r->families, COUNT_OF(r->families), r->routes, 0};
    struct route gate = {.method = METHOD_ANY,
                         .path = "/gate",
                         .handle = gate_handle,
                         .context = needs->authenticator,
                         .ignores_body = true};
    routes_add(r, gate);
    gate.path = "/gate/*"; /* Envoy adds the request's own path */
    routes_add(r, gate);
    routes_add(r, (struct route){.method = METHOD_POST,
                                 .path = "/functions/v1/check-email-status",
                                 .handle = s->probe ? probe_handle : not_served,
                                 .context = &r->probe,
                                 .hold = s->probe ? &r->probe.hold : NULL});
    routes_add(r, (struct route){.method = METHOD_POST,
                                 .path = "/functions/v1/cleanup-orphaned-user",
                                 .handle = cleanup_handle,
                                 .context = &r->cleanup,
                                 .hold = &r->cleanup.hold,
                                 .waits_for_replay = true});
    routes_add(r, (struct route){.method = METHOD_GET, .path = "/openapi.json", .handle = openapi});
    add_customers(r, needs);
    add_billing(r, needs);
    add_cascade(r, needs);
    add_calls(r, needs);
    add_console(r, needs);
    add_sandbox(r, needs);
    add_hooks(r, s, needs);
    if (needs->shows_mailbox)
        routes_add(
            r, (struct route){
                   .method = METHOD_GET, .path = "/mailbox.json", .handle = mailbox_handle, .context = &r->mailbox});
    add_pages(r, needs->pages);
    test_hooks_add_routes(r);
}

void routes_configure(struct routes *r, const struct settings *s)
{
    atomic_store(&r->probe.hold.hold_ms, s->probe_hold_ms);
    atomic_store(&r->probe.hold.sigma_ms, s->probe_hold_sigma_ms);
    atomic_store(&r->probe.timeout_ms, s->probe_timeout_ms);
    atomic_store(&r->cleanup.hold.hold_ms, s->hold_ms);
    atomic_store(&r->cleanup.hold.sigma_ms, s->hold_sigma_ms);
    reminder_times_set(&r->sandbox.reminders, s->reminders.at_ms, s->reminders.count);
    atomic_store(&r->console.deadline_ms, s->cascade_deadline_ms);
    atomic_store(&r->customers.cooldown_ms, s->cooldown_ms);
    atomic_store(&r->settings, s);
}

enum err routes_open(struct routes *r, struct lanes *lanes, struct engine *engine)
{
    struct pool *account = lanes_pool(lanes, LANE_ACCOUNT), *anonymous = lanes_pool(lanes, LANE_ANONYMOUS);
    atomic_store(&r->mailbox.pool, lanes_pool(lanes, LANE_BACKGROUND));
    atomic_store(&r->billing.pool, account);
    atomic_store(&r->cascade.pool, account);
    atomic_store(&r->cascade.anonymous, anonymous);
    atomic_store(&r->sandbox.pool, account); /* not where mails are sent, for which an advance waits */
    atomic_store(&r->console.pool, lanes_pool(lanes, LANE_BACKGROUND));
    enum err e = cleanup_open(&r->cleanup, anonymous, engine);
    if (!e)
        e = customers_open(&r->customers, lanes, engine);
    if (!e)
        e = calls_open(&r->calls, account);
    return e ? e : probe_open(&r->probe, anonymous);
}

void routes_close(struct routes *r)
{
    probe_close(&r->probe);
    cleanup_free(&r->cleanup);
    customers_close(&r->customers);
    calls_close(&r->calls);
}
