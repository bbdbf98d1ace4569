#include "server/serve.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/restored.h"
#include "calls/hangup.h"
#include "calls/switches.h"
#include "credentials/access_keys.h"
#include "customers/anonymise.h"
#include "customers/removed_users.h"
#include "erasure/storage.h"
#include "events/outbox.h"
#include "gate/gate_ended.h"
#include "http/server.h"
#include "http/strict.h"
#include "limits/store.h"
#include "proof/journal.h"
#include "server/background.h"
#include "server/database.h"
#include "server/greet.h"
#include "server/health.h"
#include "server/listeners.h"
#include "server/note_settings.h"
#include "server/open_pages.h"
#include "server/process_metrics.h"
#include "server/routes.h"
#include "server/schema.h"
#include "server/shifts.h"
#include "server/test_hooks.h"
#include "server/token_keys.h"
#include "settings/keys.h"
#include "work/leader.h"

#define QUEUE_CAPACITY 4096 /* of each lane */
#define COMPARE_NS (300 * NS_PER_S)
/* `reclaim freeze` leaves hanging up to the servers, and calls must end within a second. */
#define WORK_POLL_NS (NS_PER_S / 2)
#define PRUNE_EVERY_NS (600 * NS_PER_S)
#define SUBSCRIPTIONS_EVERY_NS NS_PER_S
#define FORGET_EVERY_NS (5 * NS_PER_S)
#define SWEEP_EVERY_NS (5 * NS_PER_S)

METRIC_GAUGE(connections, "reclaim_http_connections", "Open connections of the public listener.");
METRIC_GAUGE(held, "reclaim_http_held", "Answers that are held until their time of release.");
METRIC_GAUGE(pool_connected, "reclaim_database_connections", "Database connections that are up.");
METRIC_GAUGE(pool_queued, "reclaim_database_queued", "Jobs that wait for a database connection.");
METRIC_COUNTER(pool_retries, "reclaim_database_retries_total",
               "Runs repeated after a deadlock or a serialisation failure.");

/* One state of the settings. Those that a reload replaced are kept until the end, since requests may still read them. */
struct generation {
    struct settings *settings;
    struct http_policy policy;
    struct generation *older;
};

struct app {
    bool demo;
    _Atomic(struct generation *) now;
    struct server_keys keys;
    struct token_keys tokens;
    struct authenticator *authenticator;
    sigset_t signals;
    struct cluster *cluster;
    struct pg_pulse pulse;
    struct lanes *lanes;
    struct orphan_statements orphans;
    struct admission *admission;
    struct leader *leader;
    struct gate_ended gate_ended;
    struct keeper keeper;
    struct keeper_thread *keeping;
    struct shifts shifts;
    struct post *post;
    struct engine *engine;
    struct background *background;
    struct hangup *hangup;
    struct storage *storage;
    struct work_kind anonymise, removed_users;
    struct removed_users_sweep users_sweep;
    struct sentences *sentences;
    struct mail_design *mail_design;
    struct pages *pages; /* NULL: not served */
    struct routes routes;
    struct health health;
    struct router ops_router;
    struct server *public, *ops;
};

static const struct settings *settings_now(struct app *app)
{
    return atomic_load(&app->now)->settings;
}

static double read_connections(void *public)
{
    return server_read_state(public).connections;
}

static double read_held(void *public)
{
    return server_read_state(public).held;
}

static double read_connected(void *lanes)
{
    return lanes_read_state(lanes).connected;
}

static double read_queued(void *lanes)
{
    return (double)lanes_read_state(lanes).queued;
}

static double read_retries(void *lanes)
{
    return (double)lanes_read_state(lanes).retries;
}

static void log_warnings(const struct settings *s)
{
    for (size_t i = 0; i < s->warnings.count; i++)
        log_warn("settings", F_STR("warning", s->warnings.at[i]));
}

static void configure_limits(struct app *app, const struct settings *s)
{
    struct tier_table tiers = settings_tiers(s);
    admission_configure(app->admission, &tiers);
}

/* Puts these settings into force. The old ones stay valid for requests that have begun. */
static enum err adopt(struct app *app, struct settings *s)
{
    struct generation *g = calloc(1, sizeof *g);
    if (!g)
        return ERR_MEMORY;
    g->settings = s;
    g->policy = (struct http_policy){.proxies = s->trusted_proxies.at,
                                     .proxy_count = s->trusted_proxies.count,
                                     .origins = s->cors_origins.at,
                                     .origin_count = s->cors_origins.count,
                                     .access_log = s->access_log,
                                     .proxy_key = s->proxy_key};
    g->older = atomic_load(&app->now);
    atomic_store(&app->now, g);
    log_threshold(s->log_level);
    log_warnings(s);
    routes_configure(&app->routes, s);
    shifts_configure(&app->shifts, s);
    atomic_store(&app->keeper.retention_ms, s->backup_retention_ms);
    if (app->admission)
        configure_limits(app, s);
    if (app->public)
        server_set_policy(app->public, &g->policy);
    return OK;
}

static enum err read_again(struct app *app, struct settings **ret, struct jwt_keys **ret_tokens, struct why *why)
{
    enum err e = settings_reload(settings_now(app), ret, why);
    if (e)
        return e;
    if ((e = token_keys_prepare(&app->tokens, *ret, ret_tokens, why)))
        settings_free(*ret);
    return e;
}

static void reload(struct app *app)
{
    struct settings *fresh;
    struct jwt_keys *tokens = NULL;
    struct why why;
    if (read_again(app, &fresh, &tokens, &why)) {
        log_error("reload refused: the old settings stay", F_STR("why", why.text));
        return;
    }
    if (adopt(app, fresh)) {
        settings_free(fresh);
        jwt_keys_free(tokens);
    } else {
        token_keys_replace(&app->tokens, fresh, tokens);
        if (app->lanes) /* otherwise opening the database records them */
            note_settings_soon(lanes_pool(app->lanes, LANE_BACKGROUND), settings_now(app)->grace_ms,
                               post_has_provider(app->post), settings_now(app)->freeze_limit,
                               settings_now(app)->cooldown_ms);
        log_info("settings reloaded");
    }
}

/* Blocks the signals in all threads; the first one takes them with sigtimedwait(). */
static void block_signals(struct app *app)
{
    static const int wanted[] = {SIGTERM, SIGINT, SIGHUP, SIGCHLD};
    sigemptyset(&app->signals);
    for (size_t i = 0; i < COUNT_OF(wanted); i++)
        sigaddset(&app->signals, wanted[i]);
    pthread_sigmask(SIG_BLOCK, &app->signals, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* Every second, once the database has been opened. */
static void watch(struct app *app)
{
    lanes_watch(app->lanes);
    if (app->public && app->leader)
        console_watch(&app->routes.console, server_read_state(app->public).answered, leader_is_me(app->leader));
}

/* Waits for signals up to `ms` and restarts the embedded cluster when it has ended. False when the program must stop. */
static bool attend(struct app *app, int64_t ms)
{
    int64_t until = clock_ns() + ms * NS_PER_MS;
    for (;;) {
        int64_t left = until - clock_ns();
        if (left <= 0)
            return true;
        if (left > NS_PER_S)
            left = NS_PER_S;
        struct timespec wait = {left / NS_PER_S, left % NS_PER_S};
        int signal = sigtimedwait(&app->signals, NULL, &wait);
        if (app->cluster)
            cluster_restart_if_ended(app->cluster);
        if (app->lanes)
            watch(app);
        if (signal == SIGTERM || signal == SIGINT)
            return false;
        if (signal == SIGHUP)
            reload(app);
    }
}

static enum err prune(void *context, struct pg *pg, int64_t deadline_ns)
{
    struct app *app = context;
    const struct settings *s = settings_now(app);
    struct tier_table tiers = settings_tiers(s);
    enum err e = limits_prune(pg, &tiers, deadline_ns);
    if (e || (e = database_make_partitions(pg, deadline_ns)) || (e = cleanup_purge_codes(pg, deadline_ns)) ||
        (e = cleanup_prune_reasons(pg, s->audit_retention_ms, deadline_ns)) ||
        (e = customers_prune(pg, s->audit_retention_ms, deadline_ns)) || (e = sessions_prune(pg, deadline_ns)) ||
        (e = customers_count_frozen_again(pg, deadline_ns)) || (e = instances_prune(pg, deadline_ns)) ||
        (e = console_sessions_prune(pg, deadline_ns)) || (e = cooldown_prune(pg, deadline_ns)))
        return e;
    if ((e = gate_ended_prune(&app->gate_ended, pg, deadline_ns)) ||
        (e = audit_prune(pg, s->audit_retention_ms, deadline_ns)) ||
        (e = mail_prune(pg, s->audit_retention_ms, deadline_ns)))
        return e;
    if ((e = journal_lines_prune(pg, s->backup_retention_ms, deadline_ns)))
        return e;
    return outbox_prune(pg, s->audit_retention_ms, s->amqp_url != NULL, deadline_ns);
}

static enum err charge_subscriptions(void *context, struct pg *pg, int64_t deadline_ns)
{
    return restored_may_be() ? OK : subscriptions_charge_due(context, pg, deadline_ns);
}

static enum err sweep_removed_users(void *sweep, struct pg *pg, int64_t deadline_ns)
{
    return restored_may_be() ? OK : removed_users_sweep(sweep, pg, deadline_ns);
}

/* Before anything is served: whether the journal has lines that the database lacks. */
static enum err compare_journal(struct app *app, struct pg *pg, struct why *why)
{
    int64_t lost;
    if (!app->keeper.journal) {
        enum err e = journal_open(settings_now(app)->journal, &app->keeper.journal, why);
        if (e)
            return e;
    }
    app->keeper.keys = &app->keys.proofs;
    return keeper_compare(&app->keeper, pg, clock_ns() + COMPARE_NS, &lost, why);
}

/* Starts everything that needs the database, once it has been checked. */
static enum err open_features(struct app *app, const char *url, const char *direct, struct why *why)
{
    const struct settings *s = settings_now(app);
    /* Changes are read from the direct URL: with another for the lanes, its silence says nothing about theirs. */
    const struct pg_pulse *pulse = strcmp(url, direct) == 0 ? &app->pulse : NULL;
    struct lanes_config lanes = {.url = url,
                                 .prepare = s->prepare,
                                 .connections = (int)s->database_connections,
                                 .queue_capacity = QUEUE_CAPACITY,
                                 .pulse = pulse};
    struct duty duties[] = {{"prune", PRUNE_EVERY_NS, prune, app},
                            {"subscriptions", SUBSCRIPTIONS_EVERY_NS, charge_subscriptions, app},
                            {"farewell", FORGET_EVERY_NS, last_mail_prune, NULL},
                            {"changes", SWEEP_EVERY_NS, customers_sweep, NULL},
                            {"removed users", SWEEP_EVERY_NS, sweep_removed_users, &app->users_sweep}};
    struct leader_config leader = {direct, duties, COUNT_OF(duties)};
    if (!(app->lanes = lanes_start(&lanes, why)) || !(app->leader = leader_start(&leader, why)))
        return ERR_MEMORY;
    app->anonymise = anonymise_kind(&app->routes.customers);
    app->removed_users = removed_users_kind();
    const struct work_kind *kinds[] = {post_kind(app->post), hangup_kind(app->hangup),
                                       &app->anonymise,      storage_kind(app->storage),
                                       &app->removed_users,  hangup_own_kind(app->hangup)};
    struct work_config work = {.pool = lanes_pool(app->lanes, LANE_BACKGROUND),
                               .kinds = kinds,
                               .kind_count = COUNT_OF(kinds) - (kinds[COUNT_OF(kinds) - 1] ? 0 : 1),
                               .poll_ns = WORK_POLL_NS,
                               .record = &audit_mails_ended,
                               .direct_url = direct};
    if (!(app->engine = work_start(&work, why)))
        return ERR_MEMORY;
    enum err e = admission_open(app->admission, direct, lanes_pool(app->lanes, LANE_LIMITS),
                                lanes_pool(app->lanes, LANE_ANONYMOUS), why);
    if (e || (e = authenticator_open(app->authenticator, direct, app->lanes, &app->pulse, app->tokens.reader, why)) ||
        (e = background_start(&(struct background_config){s, url, direct, app->leader}, &app->background, why)))
        return e;
    if ((e = routes_open(&app->routes, app->lanes, app->engine)))
        return e;
    if (!(app->keeping = keeper_start(&app->keeper, direct, why)))
        return ERR_MEMORY;
    return shifts_start(&app->shifts, direct, app->leader, &app->routes.customers, &app->keeper, why);
}

/* Connects, migrates and checks the database before requests use it. ERR_CLOSED and ERR_TIMEOUT: try again later. */
static enum err bring_database_up(struct app *app, struct why *why)
{
    const struct settings *s = settings_now(app);
    const char *url = app->cluster ? cluster_url(app->cluster) : s->database_url;
    const char *direct = app->cluster ? url : s->database_direct_url;
    AUTO(pg) struct pg *pg = pg_new(direct, PG_PREPARE_OFF);
    enum err e = pg ? pg_connect(pg, clock_ns() + 5 * NS_PER_S, why) : why_set(why, ERR_MEMORY, "no memory");
    if (e || (e = pg_require_direct(pg, why)) || (e = schema_bring_up(pg, app->cluster, s->migrate, app->demo, why)) ||
        (e = database_claim(pg, &app->keys.fingerprint, why)))
        return e;
    if ((e = database_note_settings(pg, s->grace_ms, post_has_provider(app->post), s->freeze_limit, s->cooldown_ms,
                                    clock_ns() + DATABASE_DEADLINE_NS)))
        return why_set(why, e, "cannot record the settings in reclaim.installation (%s)", err_name(e));
    if ((e = database_note_customers(pg, s->customers == CUSTOMERS_USERS, why)) ||
        (e = database_check_statements(pg, &app->orphans, why)) ||
        (e = database_note_ownership(pg, s->ownership.at, s->ownership.count, why)) ||
        (e = database_guard_ownership(pg, s->ownership.at, s->ownership.count, &app->orphans, why)))
        return e;
    if ((e = sandbox_note(pg, settings_is_sandbox(s, app->demo), s->sandbox == SANDBOX_AS_DEMO,
                          clock_ns() + DATABASE_DEADLINE_NS, why)))
        return e;
    database_warn_of_hidden_rows(pg, s->ownership.at, s->ownership.count);
    if (s->switch_rpc_url &&
        (e = switches_record_setting(pg, s->switch_rpc_url, clock_ns() + DATABASE_DEADLINE_NS, why)))
        return e;
    if ((e = token_keys_read(&app->tokens, pg, direct, why)) || (e = compare_journal(app, pg, why)))
        return e;
    return open_features(app, url, direct, why);
}

/* Tries until the database is reachable; meanwhile requests are answered with 503. Logs each new reason once. */
static enum err await_database(struct app *app, bool *ret_stopped)
{
    char last[sizeof((struct why *)0)->text] = "";
    static const struct backoff trying = {200 * NS_PER_MS, 2 * NS_PER_S};
    for (int failures = 1;; failures++) {
        struct why why = {""};
        enum err e = bring_database_up(app, &why);
        if (!e)
            break;
        if (e != ERR_CLOSED && e != ERR_TIMEOUT) {
            log_error("cannot start", F_STR("why", why.text));
            return e;
        }
        if (strcmp(last, why.text) != 0)
            log_warn(strncmp(why.text, "RECLAIM_JWKS_URL", strlen("RECLAIM_JWKS_URL")) == 0
                         ? "waiting for the key set"
                         : "waiting for the database",
                     F_STR("why", why.text));
        memcpy(last, why.text, sizeof last);
        if (!attend(app, backoff_ns(trying, failures) / NS_PER_MS)) {
            *ret_stopped = true;
            return OK;
        }
    }
    gauge_source(&pool_connected, read_connected, app->lanes);
    gauge_source(&pool_queued, read_queued, app->lanes);
    counter_source(&pool_retries, read_retries, app->lanes);
    atomic_store(&app->health.lanes, app->lanes);
    const struct settings *s = settings_now(app);
    if (!s->jwt_secret && !s->jwks_file && !s->jwks_url)
        log_info("only Reclaim's own tokens and API keys are accepted",
                 F_STR("settings", "RECLAIM_JWKS_URL, RECLAIM_JWKS_FILE and RECLAIM_JWT_SECRET are for those of an "
                                   "identity provider"));
    log_info("ready");
    return OK;
}

static enum err listen_all(struct app *app, struct why *why)
{
    enum err e = strict_check_library(why);
    if (e)
        return e;
    const struct settings *s = settings_now(app);
    const struct http_policy *policy = &atomic_load(&app->now)->policy;
    const struct server_config public = listener_public(s, &app->routes.router, policy);
    const struct server_config ops = listener_ops(s, &app->ops_router, policy);
    if ((e = server_start(&public, &app->public, why)))
        return e;
    if (app->demo && s->pages && !s->public_url &&
        (e = mail_design_link_to(app->mail_design, server_address(app->public))))
        return why_set(why, e, "no memory for the mails' design");
    instance_init(&app->routes.console.instance, server_address(app->public), s->amqp_url != NULL);
    gauge_source(&connections, read_connections, app->public);
    gauge_source(&held, read_held, app->public);
    return server_start(&ops, &app->ops, why);
}

/* Raises the limit of open files to what the connections need, as far as the kernel allows. */
static void raise_file_limit(const struct settings *s)
{
    struct rlimit limit;
    rlim_t wanted = (rlim_t)s->max_connections + 1024;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
        return;
    limit.rlim_cur = limit.rlim_max == RLIM_INFINITY || limit.rlim_max > wanted ? wanted : limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < wanted)
        log_warn("fewer files than RECLAIM_MAX_CONNECTIONS needs: raise ulimit -n",
                 F_INT("limit", (int64_t)limit.rlim_cur), F_INT("wanted", (int64_t)wanted));
}

/* Reads the keys of tokens and starts the authenticator. */
static enum err open_authenticator(struct app *app, const struct settings *s, struct why *why)
{
    enum err e = token_keys_open(&app->tokens, s, &app->keys.tokens, why);
    if (e)
        return e;
    app->authenticator = authenticator_new(
        &(struct authenticator_config){app->tokens.ring, s->jwks_url != NULL, &app->keys.access_keys});
    return app->authenticator ? OK : why_set(why, ERR_MEMORY, "no memory for the authenticator");
}

static enum err open_post(struct app *app, const struct settings *s, struct why *why)
{
    const struct mail_design_config design = {.sentences = app->sentences,
                                              .language = s->language,
                                              .brand_name = s->brand_name,
                                              .brand_color = s->brand_color,
                                              .public_url = s->pages ? s->public_url : NULL,
                                              .texts_folder = s->texts};
    struct mail_settings mail = settings_mail(s, app->demo);
    enum err e = mail_design_new(&design, &app->mail_design, why);
    if (e)
        return e;
    mail.design = app->mail_design;
    mail.features[0] = cleanup_mails(&app->routes.cleanup);
    mail.features[1] = customers_mails(&app->routes.customers);
    return post_new(&mail, &app->post, why);
}

static enum err open_app(struct app *app, const char *config_file, struct why *why)
{
    struct settings *s;
    enum err e = settings_load(config_file, &s, why);
    if (e)
        return e;
    if (app->demo && s->database_url) {
        settings_free(s);
        return why_set(
            why, ERR_INPUT,
            "--demo fills a private database and shows mails without authentication: unset RECLAIM_DATABASE_URL, or "
            "start without --demo");
    }
    if ((e = adopt(app, s))) {
        settings_free(s);
        return why_set(why, e, "no memory for the settings");
    }
    if ((e = orphan_statements_write(s->ownership.at, s->ownership.count, &app->orphans)))
        return why_set(why, e, "RECLAIM_OWNERSHIP has too many columns");
    if (!(app->admission = admission_new()))
        return why_set(why, ERR_MEMORY, "no memory for the limits");
    configure_limits(app, s);
    if ((e = keys_read(s, &app->keys, why)) || (e = open_authenticator(app, s, why)) ||
        (e = sentences_load(s->texts, &app->sentences, why)) || (e = open_post(app, s, why)) ||
        (e = open_pages(s, app->demo, &app->keys, app->sentences, &app->pages, why)))
        return e;
    if (!(app->hangup = hangup_new(s->switch_rpc_url)))
        return why_set(why, ERR_MEMORY, "no memory for calls");
    if (!(app->storage = storage_new(s->storage_url, s->storage_key)))
        return why_set(why, ERR_MEMORY, "no memory for the Storage API");
    routes_init(&app->routes, s,
                &(struct routes_needs){
                    &app->orphans, &app->keys.identifiers, &app->keys.codes, &app->keys.sign_in_codes, app->admission,
                    app->post, app->authenticator, &app->keys.tokens, &app->keys.last_mails, &app->keys.cooldowns,
                    &app->keys.proofs, app->sentences, settings_shows_mailbox(s, app->demo), app->pages});
    routes_configure(&app->routes, s);
    app->health.pulse = &app->pulse;
    app->ops_router = health_router(&app->health);
    raise_file_limit(s);
    if (!s->database_url && (e = cluster_start(s->data_dir, &app->cluster, why)))
        return e;
    if ((e = listen_all(app, why)))
        return e;
    if (!post_has_provider(app->post))
        log_warn("no mail provider is set: codes cannot be sent",
                 F_STR("settings", "RECLAIM_RESEND_API_KEY, "
                                   "RECLAIM_SENDGRID_API_KEY or RECLAIM_SMTP_URL, and RECLAIM_MAIL_FROM"));
    return OK;
}

/* Finishes requests that have begun, then closes the database. */
static bool close_app(struct app *app)
{
    int64_t deadline_ns = clock_ns() + (atomic_load(&app->now) ? settings_now(app)->drain_ms : 0) * NS_PER_MS;
    atomic_store(&app->health.draining, true);
    gauge_source(&connections, NULL, NULL);
    gauge_source(&held, NULL, NULL);
    bool clean = server_stop(app->public, deadline_ns);
    atomic_store(&app->health.lanes, NULL);
    clean &= server_stop(app->ops, clock_ns() + NS_PER_S);
    token_keys_stop(&app->tokens);
    shifts_stop(&app->shifts);
    keeper_stop(app->keeping);
    journal_close(app->keeper.journal);
    if (app->lanes) {
        cleanup_close(&app->routes.cleanup);
        gauge_source(&pool_connected, NULL, NULL);
        gauge_source(&pool_queued, NULL, NULL);
        counter_source(&pool_retries, NULL, NULL);
        if (app->engine)
            work_stop(app->engine, clock_ns() + 2 * NS_PER_S);
        instance_leave(&app->routes.console.instance, lanes_pool(app->lanes, LANE_BACKGROUND));
        lanes_stop(app->lanes, clock_ns() + NS_PER_S);
    }
    background_stop(app->background);
    leader_stop(app->leader);
    if (clean) { /* otherwise a request that has not ended still uses them */
        routes_close(&app->routes);
        authenticator_free(app->authenticator);
        token_keys_free(&app->tokens);
        admission_free(app->admission);
        work_free(app->engine);
        post_free(app->post);
        mail_design_free(app->mail_design);
        pages_free(app->pages);
        sentences_free(app->sentences);
        hangup_free(app->hangup);
        storage_free(app->storage);
    }
    if (app->cluster)
        cluster_stop(app->cluster, clock_ns() + 10 * NS_PER_S);
    if (!clean)
        return false;
    orphan_statements_free(&app->orphans);
    struct generation *g = atomic_load(&app->now);
    while (g) {
        struct generation *older = g->older;
        settings_free(g->settings);
        free(g);
        g = older;
    }
    return true;
}

int serve(const char *config_file, bool demo)
{
    struct app app = {.demo = demo};
    struct why why = {""};
    block_signals(&app);
    test_hooks_shift_clocks();
    process_metrics_start();
    bool stopped = false;
    int code = 0;
    if (open_app(&app, config_file, &why)) {
        fprintf(stderr, "reclaim: %s\n", why.text);
        code = 1;
    } else if (await_database(&app, &stopped)) {
        code = 1;
    } else if (!stopped) {
        if (app.demo)
            greet(settings_now(&app), server_address(app.public), server_address(app.ops), cluster_url(app.cluster));
        while (attend(&app, INT64_C(60) * 1000))
            ;
    }
    if (code == 0)
        log_info("stopping");
    if (!close_app(&app)) {
        log_warn("stopped with answers unfinished");
        _exit(1);
    }
    return code;
}
