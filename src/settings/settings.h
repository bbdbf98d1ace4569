/* The settings of the program, checked and typed: other code reads `s->probe_hold_ms`.
 *
 * Values come from the environment or, under the same names, from an INI file; the environment wins. NAME_FILE reads
 * NAME's value from a file. One table (settings/table.c) holds names, types, bounds, defaults and help; parsing, error
 * messages, `reclaim help settings` and docs/settings.md are generated from it. */
#ifndef SETTINGS_SETTINGS_H
#define SETTINGS_SETTINGS_H

#include <stdio.h>

#include "base/buf.h"
#include "base/ip.h"
#include "base/log.h"
#include "credentials/jwt.h"
#include "limits/tiers.h"
#include "mail/mail.h"
#include "pg/pg.h"
#include "recovery/orphans.h"
#include "text/language.h"

enum contract_name { CONTRACT_CLEANUP_V1, CONTRACT_REGISTRATION_RECOVERY };

struct setting_strings {
    const char *const *at;
    size_t count;
};

struct setting_cidrs {
    const struct cidr *at;
    size_t count;
};

struct setting_columns {
    const struct ownership_column *at; /* case kept */
    size_t count;
};

struct setting_durations {
    const int64_t *at_ms;
    size_t count;
};

struct settings {
    /* Database */
    const char *database_url;        /* NULL: the embedded cluster */
    const char *database_direct_url; /* database_url where not set */
    enum pg_prepare prepare;
    int64_t database_connections;
    bool migrate;
    struct setting_columns ownership;

    /* HTTP */
    const char *listen, *ops_listen; /* "127.0.0.1:8080", "[::1]:8080" */
    int64_t workers;
    int64_t max_connections;
    int64_t connections_per_network; /* negative: no limit */
    struct setting_cidrs trusted_proxies;
    const char *proxy_key;               /* NULL: none */
    struct setting_strings cors_origins; /* "*" alone: every origin */
    int64_t drain_ms;

    /* Registration recovery */
    enum contract_name contract;
    enum enumeration { ENUMERATION_DOCUMENTED, ENUMERATION_UNIFORM } enumeration;
    int64_t hold_ms, hold_sigma_ms;
    bool probe; /* check-email-status is served */
    int64_t probe_hold_ms, probe_hold_sigma_ms, probe_timeout_ms;
    int64_t audit_retention_ms;
    struct limit limit_global, limit_ip, limit_email, limit_probe;

    /* Account deletion */
    int64_t grace_ms, expiry_interval_ms, cascade_deadline_ms;
    enum proof { PROOF_DOCUMENTED, PROOF_STRICT } proof; /* of a deletion */
    enum customers_from { CUSTOMERS_TABLE, CUSTOMERS_USERS } customers;
    int64_t expiry_brake; /* -1: off */
    int64_t freeze_limit; /* -1: off */
    struct setting_durations reminders;
    struct limit limit_login;
    enum sandbox_setting { SANDBOX_OFF, SANDBOX_ON, SANDBOX_AS_DEMO } sandbox; /* the last: not set */
    const char *switch_rpc_url;            /* NULL: calls at that switch are left to other instances */
    int64_t cooldown_ms;                   /* of the addresses of deleted customers; negative: off */
    const char *hook_secret;               /* NULL when not set: see webhook_secrets_read */
    const char *storage_url, *storage_key; /* of the Storage API; NULL when not set */

    /* Mail; NULL where a provider is not used */
    const char *mail_from; /* "addr" or "Name <addr>" */
    const char *resend_api_key, *resend_url;
    const char *sendgrid_api_key, *sendgrid_url;
    const char *smtp_url;

    /* Pages */
    bool pages;                          /* they are served */
    const char *public_url, *signup_url; /* NULL when not set */
    const char *brand_name, *brand_logo, *brand_color;
    enum language language;
    const char *texts;           /* a folder; NULL: none */
    int64_t backup_retention_ms; /* how long backups exist; stated on the page that explains deletion */

    /* Events */
    const char *amqp_url; /* NULL: events stay in the outbox */

    /* Keys, files and logs */
    const char *data_dir, *journal; /* journal: made of data_dir when it is not set */
    const char *secret_key;         /* NULL when not set: see settings_secret_key */
    /* NULL when not set: see settings_token_keys */
    const char *jwt_secret, *jwks_file, *jwks_url;
    const char *jwt_issuer, *jwt_audience; /* NULL when not set */
    enum log_level log_level;
    bool access_log;

    /* Sentences for the log and for `reclaim doctor`: unknown names, files that other users can read, changes that need a
     * restart. */
    struct setting_strings warnings;

    struct settings_origin *origin; /* where the values came from; owns their memory */
};

/* `config_file` may be NULL. Nothing is logged; `why` is one line that names the setting, its value (never a secret's)
 * and what was expected. */
enum err settings_load(const char *config_file, struct settings **ret, struct why *why) MUST_CHECK;
/* Reads the same sources again. What cannot change while the program runs keeps the old value, with a warning. The old
 * settings stay valid: requests that have begun still use them. */
enum err settings_reload(const struct settings *old, struct settings **ret, struct why *why) MUST_CHECK;
void settings_free(struct settings *s); /* wipes secrets */
void settings_cleanup(struct settings **s);

/* The master key: RECLAIM_SECRET_KEY, or the file in the data directory. The file is created when there is none, the
 * database is the embedded one and `may_make` is set. Safe for several processes at once. The caller wipes it. */
#define SECRET_KEY_MIN 32
#define SECRET_KEY_MAX 512
enum err settings_secret_key(const struct settings *s, bool may_make, char into[SECRET_KEY_MAX + 1],
                             struct why *why) MUST_CHECK;

/* The keys that tokens are verified with: Reclaim's own, and those that the settings name for other issuers. `jwks_read` is
 * the set that was read from RECLAIM_JWKS_URL; absent: none. */
enum err settings_token_keys(const struct settings *s, const struct digest *own, struct str jwks_read,
                             struct jwt_keys **ret, struct why *why) MUST_CHECK;

struct tier_table settings_tiers(const struct settings *s);
/* Sender and providers; the caller fills in how mails are composed. */
struct mail_settings settings_mail(const struct settings *s, bool demo);
/* With --demo and without a provider mails are stored in a table. */
bool settings_has_mailbox(const struct settings *s, bool demo);
/* /mailbox shows these mails, codes included, when the public listener is on a loopback address. */
bool settings_shows_mailbox(const struct settings *s, bool demo);

/* The installation's clock can be moved. */
bool settings_is_sandbox(const struct settings *s, bool demo);

void settings_print_help(FILE *out);     /* `reclaim help settings` */
void settings_print_markdown(FILE *out); /* docs/settings.md */
void settings_print_ini(FILE *out);      /* deploy/reclaim.ini.example */
/* {"items":[{"name","group","value","source","reloadable","help"}],"warnings":[…]}; masked in the same way */
void settings_write_json(const struct settings *s, bool is_sandbox, struct buf *out);
struct setting_shown {
    const char *name, *group;
    struct str value;   /* secrets and passwords as ***; absent: not set, and no default */
    const char *source; /* default, environment or file */
    const char *where;  /* the file and line, or the file that NAME_FILE names; NULL: neither */
    bool reloadable;
    const char *help;
};
/* Calls `each` for every setting, in the order of the table; what it gets is valid during the call. */
void settings_each(const struct settings *s, void (*each)(void *context, const struct setting_shown *setting),
                   void *context);
void settings_print_man(FILE *out); /* reclaim.ini(5) */

#endif
