#include "settings/table.h"

#include <ctype.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

static void count_cores(char *into, size_t size)
{
    cpu_set_t cores;
    int count = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
    snprintf(into, size, "%d", count > 64 ? 64 : count);
}

static const char *const prepare_words[] = {
    [PG_PREPARE_AUTO] = "auto", [PG_PREPARE_ON] = "on", [PG_PREPARE_OFF] = "off", NULL};
static const char *const contract_words[] = {
    [CONTRACT_CLEANUP_V1] = "cleanup-v1", [CONTRACT_REGISTRATION_RECOVERY] = "registration-recovery", NULL};
static const char *const enumeration_words[] = {
    [ENUMERATION_DOCUMENTED] = "documented", [ENUMERATION_UNIFORM] = "uniform", NULL};
static const char *const customers_words[] = {[CUSTOMERS_TABLE] = "table", [CUSTOMERS_USERS] = "users", NULL};
static const char *const proof_words[] = {[PROOF_DOCUMENTED] = "documented", [PROOF_STRICT] = "strict", NULL};
static const char *const language_words[] = {[LANGUAGE_EN] = "en", [LANGUAGE_DE] = "de", NULL};
static const char *const sandbox_words[] = {[SANDBOX_OFF] = "off", [SANDBOX_ON] = "on", NULL};
static const char *const level_words[] = {
    [LOG_DEBUG] = "debug", [LOG_INFO] = "info", [LOG_WARN] = "warn", [LOG_ERROR] = "error", NULL};

/* The offset of the member; does not compile when its C type is not the one that the setting's type writes. */
#define FIELD(member, ctype)                                                                                           \
    (offsetof(struct settings, member) +                                                                               \
     0 * sizeof(char[__builtin_types_compatible_p(__typeof__(((struct settings *)0)->member), ctype) ? 1 : -1]))

#define ROW(name_, type_, member, ctype)                                                                               \
    .name = "RECLAIM_" name_, .type = &setting_##type_, .field = FIELD(member, ctype)

#define DATABASE .group = "Database"
#define HTTP .group = "HTTP"
#define RECOVERY .group = "Registration recovery"
#define DELETION .group = "Account deletion"
#define MAIL .group = "Mail"
#define EVENTS .group = "Events"
#define PAGES .group = "Pages"
#define RUNNING .group = "Files, keys and logs"

const struct setting settings_rows[] = {
    {DATABASE, ROW("DATABASE_URL", database, database_url, const char *),
     .standard_words = "a private cluster under `RECLAIM_DATA_DIR`",
     .help =
         "The PostgreSQL database; several hosts are allowed, and the one that takes writes is used. Unset: Reclaim "
         "makes and runs a private PostgreSQL on a unix socket."},
    {DATABASE, ROW("DATABASE_DIRECT_URL", database, database_direct_url, const char *),
     .standard_words = "`RECLAIM_DATABASE_URL`",
     .help =
         "The same database without a pooler in between, for LISTEN, leadership and migrations; through a pooler the "
         "server does not start."},
    {DATABASE, ROW("DATABASE_CONNECTIONS", integer, database_connections, int64_t), .min = 1, .max = 200,
     .standard = "16",
     .help = "Database connections of each instance, split into lanes so that no kind of request can use up those of "
             "another; at least one for each of the five lanes. A few more are for listening, changes and the leader."},
    {DATABASE, ROW("PREPARE", choice, prepare, enum pg_prepare), .choices = prepare_words, .standard = "auto",
     .help = "Named prepared statements; off behind poolers that lack them, auto finds out."},
    {DATABASE, ROW("MIGRATE", switch, migrate, bool), .standard = "on",
     .help = "Bring the schema up to date when the server starts; off leaves that to `reclaim migrate`."},
    {DATABASE, ROW("OWNERSHIP", columns, ownership, struct setting_columns), .items_max = OWNERSHIP_MAX,
     .standard = "companies.owner_admin_uuid,company_admins.admin_uuid",
     .help =
         "Columns that refer to auth.users and whose rows make a user not orphaned. Without a schema, public is "
         "used; names are written as in the catalogue, case included. A condition "
         "behind `where` makes only such rows count, for tables in which every user has one: an SQL expression over "
         "the table's own columns, named without the table."},

    {HTTP, ROW("LISTEN", listen, listen, const char *), .standard = "127.0.0.1:8080",
     .help = "Where the public HTTP server listens; port 0 takes a free one."},
    {HTTP, ROW("OPS_LISTEN", listen, ops_listen, const char *), .standard = "127.0.0.1:8081",
     .help = "Where `/livez`, `/readyz` and `/metrics` are served; keep it off the public network."},
    {HTTP, ROW("WORKERS", integer, workers, int64_t), .min = 1, .max = 64, .compute = count_cores,
     .standard_words = "the number of cores", .help = "Event loops, a thread each."},
    {HTTP, ROW("MAX_CONNECTIONS", integer, max_connections, int64_t), .min = 16, .max = 200000, .standard = "12000",
     .help =
         "HTTP connections held at once. Beyond that the one that is idle for longest is closed for a new one; while "
         "none is idle, new ones wait to be accepted."},
    {HTTP, ROW("CONNECTIONS_PER_NETWORK", threshold, connections_per_network, int64_t), .min = 1, .max = 200000,
     .standard = "200",
     .help =
         "Open HTTP connections per client network (an IPv4 address, an IPv6 /64); more are closed at once. Loopback "
         "and trusted proxies are exempt."},
    {HTTP, ROW("TRUSTED_PROXIES", cidrs, trusted_proxies, struct setting_cidrs), .items_max = 64, .standard = "none",
     .reloadable = true,
     .help = "Networks of proxies whose X-Forwarded-For is believed, read from the right; for other clients the peer "
             "address of the connection is used."},
    {HTTP, ROW("PROXY_KEY", secret, proxy_key, const char *), .min = 32, .max = 512, .standard_words = "none",
     .reloadable = true,
     .help =
         "A caller that sends this in `X-Reclaim-Proxy-Key` is believed about `X-Forwarded-For` as a trusted proxy is: "
         "for edge functions, which have no fixed address. Make one with `openssl rand -hex 32`."},
    {HTTP, ROW("CORS_ORIGINS", origins, cors_origins, struct setting_strings), .items_max = 64, .standard = "*",
     .reloadable = true,
     .help = "Origins whose pages may call `/functions/v1/`, `/auth/` and `/v1/`, where credentials are headers, never "
             "cookies."},
    {HTTP, ROW("DRAIN", duration, drain_ms, int64_t), .max = 600000, .standard = "30s", .reloadable = true,
     .help = "Time allowed at shutdown for finishing requests that have begun."},

    {RECOVERY, ROW("CONTRACT", choice, contract, enum contract_name), .choices = contract_words,
     .standard = "cleanup-v1", .help = "Which of the two published contracts of the clean-up is used."},
    {RECOVERY, ROW("ENUMERATION", choice, enumeration, enum enumeration), .choices = enumeration_words,
     .standard = "documented",
     .help =
         "What the clean-up reveals about addresses: what its contract documents or, with uniform, never whether one "
         "exists."},
    {RECOVERY, ROW("HOLD_MS", milliseconds, hold_ms, int64_t), .max = 60000, .standard = "500", .reloadable = true,
     .help = "Every answer of the clean-up is sent this long after its request, so that its timing reveals nothing; 0 "
             "turns that off."},
    {RECOVERY, ROW("HOLD_SIGMA_MS", milliseconds, hold_sigma_ms, int64_t), .max = 30000, .standard = "25",
     .reloadable = true, .help = "Standard deviation of the Gaussian jitter around that hold, cut at twice itself."},
    {RECOVERY, ROW("PROBE", switch, probe, bool), .standard = "on",
     .help = "Serve check-email-status, which tells anyone whether an address is registered; off answers 404."},
    {RECOVERY, ROW("PROBE_HOLD_MS", milliseconds, probe_hold_ms, int64_t), .max = 60000, .standard = "150",
     .reloadable = true,
     .help = "Every answer of check-email-status is sent this long after its request, so that its timing reveals "
             "nothing; 0 turns that off."},
    {RECOVERY, ROW("PROBE_HOLD_SIGMA_MS", milliseconds, probe_hold_sigma_ms, int64_t), .max = 30000, .standard = "10",
     .reloadable = true, .help = "Standard deviation of the Gaussian jitter around that hold, cut at twice itself."},
    {RECOVERY, ROW("PROBE_TIMEOUT_MS", milliseconds, probe_timeout_ms, int64_t), .min = 1, .max = 60000,
     .standard = "100", .reloadable = true,
     .help = "Time allowed for the company query of check-email-status; after that the answer has null."},

    {RECOVERY, ROW("AUDIT_RETENTION", duration, audit_retention_ms, int64_t), .min = 3600000, .max = 315360000000,
     .standard = "365d", .reloadable = true,
     .help = "How long the rows of `reclaim.auth_cleanup_log` and `auth_cleanup_events`, those of "
             "`reclaim.event_outbox` once "
             "they are published, and mails that failed for good are kept."},
    {RECOVERY, ROW("LIMIT_GLOBAL", limit, limit_global, struct limit), .standard = "1000/60", .reloadable = true,
     .help = "Clean-up requests of everyone together, each step counted apart."},
    {RECOVERY, ROW("LIMIT_IP", limit, limit_ip, struct limit), .standard = "5/60", .reloadable = true,
     .help = "Clean-up requests of one client address; IPv6 counts by /64, and by /48 with ten times the limit."},
    {RECOVERY, ROW("LIMIT_EMAIL", limit, limit_email, struct limit), .standard = "3/3600", .reloadable = true,
     .help =
         "Clean-up requests for one e-mail address; asking for a code, trying one, and asking for a sign-in code are "
         "counted apart. A right code is not refused."},
    {RECOVERY, ROW("LIMIT_PROBE", limit, limit_probe, struct limit), .standard = "30/60", .reloadable = true,
     .help = "Requests to check-email-status of one client address; IPv6 counts by /64, and by /48 with ten times the "
             "limit."},

    {DELETION, ROW("GRACE", duration, grace_ms, int64_t), .min = 1000, .max = 315360000000, .standard = "30d",
     .reloadable = true,
     .help =
         "How long a customer that is frozen from now on can still recover; the date is stored with each freeze, and "
         "the first expiry pass after it deletes the customer. Recorded in the database when a server starts."},
    {DELETION, ROW("CUSTOMERS", choice, customers, enum customers_from), .choices = customers_words,
     .standard = "table",
     .help = "`users`: each user of `auth.users` is a customer of the same id, without a row in `customer_customers` "
             "until one is needed. Recorded in the database when a server starts; the latest start counts."},
    {DELETION, ROW("EXPIRY_INTERVAL", duration, expiry_interval_ms, int64_t), .min = 1000, .max = 86400000,
     .standard = "1h", .reloadable = true, .help = "How often the leader deletes customers whose grace is over."},
    {DELETION, ROW("EXPIRY_BRAKE", threshold, expiry_brake, int64_t), .min = 0, .max = 1000000000, .standard = "1000",
     .reloadable = true,
     .help = "When more customers than this, and more than 5 % of all, became due since the last expiry pass, no pass "
             "deletes any until `reclaim expire --confirm N`."},
    {DELETION, ROW("FREEZE_LIMIT", threshold, freeze_limit, int64_t), .min = 1, .max = 1000, .standard = "off",
     .reloadable = true,
     .help = "How often customers can freeze themselves within 30 days; then `POST /auth/unregister` is answered 429. "
             "Administrators and plain SQL are not limited. Recorded in the database when a server starts."},
    {DELETION, ROW("PROOF", choice, proof, enum proof), .choices = proof_words, .standard = "documented",
     .help = "`strict`: users without a password prove the deletion of their account with a mailed code, not with the "
             "phrase DELETE. API keys prove it with the phrase."},
    {DELETION, ROW("REMINDERS", durations, reminders, struct setting_durations), .min = 1000, .max = 315360000000,
     .items_max = 16, .standard = "7d,1d", .reloadable = true,
     .help =
         "How long before a frozen customer's deletion it is reminded by mail, once each; none sends no reminders."},
    {DELETION, ROW("CASCADE_DEADLINE", duration, cascade_deadline_ms, int64_t), .min = 1000, .max = 315360000000,
     .standard = "1h", .reloadable = true,
     .help = "After this long an erasure that is not complete counts in `reclaim_cascade_overdue`, to alarm on."},
    {DELETION, ROW("LIMIT_LOGIN", limit, limit_login, struct limit), .standard = "10/900", .reloadable = true,
     .help = "Passwords tried for one e-mail address from one network, or for one user, and as many from one client "
             "address; "
             "IPv6 counts by /64, and by /48 with ten times the limit. Ten times as many for one e-mail address from "
             "everywhere: then only networks with a successful sign-in to it within 30 days are served. Sign-in codes "
             "asked "
             "for and tried from one client address count, too."},

    {DELETION, ROW("SANDBOX", choice, sandbox, enum sandbox_setting), .choices = sandbox_words,
     .standard_words = "`off`; `on` with `--demo`",
     .help = "Lets `reclaim clock` and `POST /v1/sandbox/clock` move the installation's clock, to see what thirty days "
             "bring. Recorded in the database when a server starts; refused where customers were deleted before."},

    {DELETION, ROW("SWITCH_RPC_URL", http_url, switch_rpc_url, const char *), .standard_words = "none",
     .help = "Kamailio's JSON-RPC, by which the calls of frozen and deleted customers are hung up. Recorded in the "
             "database as the switch `default`, without the URL itself: instances without it leave these calls to "
             "those that have it. `reclaim switch add` records further switches, and URLs for every instance."},

    {DELETION, ROW("COOLDOWN", optional_duration, cooldown_ms, int64_t), .min = 1000, .max = 315360000000,
     .standard = "off", .reloadable = true,
     .help =
         "How long the address of a deleted customer cannot register again. Only a keyed hash of it is kept, and the "
         "hook before-user-created of Supabase Auth refuses it; a change concerns later deletions. Recorded in the "
         "database when a server starts."},
    {DELETION, ROW("HOOK_SECRET", hook_secret, hook_secret, const char *),
     .standard_words = "none; `/hooks/before-user-created` is answered 404",
     .help = "The secret that Supabase Auth shows for its hook, `v1,whsec_…`; while it is replaced the old and the new "
             "one with `|` between them."},

    {DELETION, ROW("STORAGE_URL", http_url, storage_url, const char *), .standard_words = "none",
     .help = "Supabase's Storage API, through which the objects of participants made by `reclaim cascade add NAME "
             "--storage "
             "BUCKET` are deleted: `https://PROJECT.supabase.co/storage/v1`."},
    {DELETION, ROW("STORAGE_KEY", storage_key, storage_key, const char *), .min = 16, .max = 4096,
     .standard_words = "none; required with the URL",
     .help = "The project's secret key for it, `sb_secret_…`, or the legacy `service_role` key."},

    {MAIL, ROW("MAIL_FROM", mail_from, mail_from, const char *), .standard_words = "none; required with a provider",
     .help = "The sender of mails, as registered with the providers: an address, or a name and an address in angle "
             "brackets."},
    {MAIL, ROW("RESEND_API_KEY", secret, resend_api_key, const char *), .min = 1, .max = 512, .standard_words = "none",
     .help = "Sends mails through Resend, before any other provider. Without a provider no code can be sent; the "
             "mails of `--demo` stay in a local mailbox."},
    {MAIL, ROW("RESEND_URL", http_url, resend_url, const char *), .standard = "https://api.resend.com/emails",
     .help = "Resend's endpoint for sending mails."},
    {MAIL, ROW("SENDGRID_API_KEY", secret, sendgrid_api_key, const char *), .min = 1, .max = 512,
     .standard_words = "none", .help = "Sends mails through SendGrid; where Resend is set too, after it has failed."},
    {MAIL, ROW("SENDGRID_URL", http_url, sendgrid_url, const char *),
     .standard = "https://api.sendgrid.com/v3/mail/send", .help = "SendGrid's endpoint for sending mails."},
    {MAIL, ROW("SMTP_URL", smtp_url, smtp_url, const char *), .standard_words = "none",
     .help =
         "A mail server to send through, after the providers above: `smtps://user:password@host`, or `smtp://`, which "
         "changes to TLS first unless the server is on this machine."},

    {PAGES, ROW("PAGES", switch, pages, bool), .standard = "on",
     .help = "Serve the pages for people: `/`, `/recover`, `/account`, `/admin`, `/docs`."},
    {PAGES, ROW("PUBLIC_URL", http_url, public_url, const char *),
     .standard_words = "none; with `--demo` the address that it listens on",
     .help = "Where people reach this server, for links in mails: https://account.example.com. With https cookies are "
             "sent over https only."},
    {PAGES, ROW("SIGNUP_URL", http_url, signup_url, const char *), .standard_words = "none",
     .help = "Where people register; the page that deletes an unfinished registration ends with a link to it."},
    {PAGES, ROW("BRAND_NAME", string, brand_name, const char *), .min = 1, .max = 60, .standard = "Reclaim",
     .help = "The product's name on pages and in mails."},
    {PAGES, ROW("BRAND_LOGO", string, brand_logo, const char *), .min = 1, .max = 4096, .standard_words = "none",
     .help = "An .svg or .png file of at most 256 KiB, shown beside the name."},
    {PAGES, ROW("BRAND_COLOR", string, brand_color, const char *), .min = 7, .max = 7, .standard = "#2f5bea",
     .help = "The colour of buttons and links, as #rrggbb. It is made darker or lighter until text can be read."},
    {PAGES, ROW("LANGUAGE", choice, language, enum language), .choices = language_words, .standard = "en",
     .help = "The language of readers who ask for none that is here."},
    {PAGES, ROW("TEXTS", string, texts, const char *), .min = 1, .max = 4096, .standard_words = "none",
     .help = "A folder whose en.ini and de.ini replace sentences, and whose templates/NAME.html replace templates of "
             "pages and mails."},
    {PAGES, ROW("BACKUP_RETENTION", duration, backup_retention_ms, int64_t), .min = 0, .max = 315360000000,
     .standard = "35d",
     .help =
         "How long backups of the database exist: stated where deletion is explained and in certificates. Lines of the "
         "journal are kept as long."},

    {EVENTS, ROW("AMQP_URL", amqp_url, amqp_url, const char *), .standard_words = "none",
     .help =
         "RabbitMQ: `amqp://user:password@host:5672/vhost`, or `amqps://` with `?cacertfile=`, and `certfile=` with "
         "`keyfile=`, where the system's certificate authorities are not enough. Without it events are read from "
         "`reclaim.event_outbox`."},

    {RUNNING, ROW("DATA_DIR", string, data_dir, const char *), .min = 1, .max = 1024, .standard = "./reclaim-data",
     .help = "Directory of the private cluster and of generated keys."},
    {RUNNING, ROW("JOURNAL", string, journal, const char *), .min = 1, .max = 1024,
     .standard_words = "`RECLAIM_DATA_DIR/journal`",
     .help = "Folder outside the database that lists who was erased, in ids and keyed hashes. After a restore "
             "`reclaim replay-erasures` erases them again: back it up apart from the database."},
    {RUNNING, ROW("SECRET_KEY", secret, secret_key, const char *), .min = SECRET_KEY_MIN, .max = SECRET_KEY_MAX,
     .standard_words = "made into `RECLAIM_DATA_DIR`; required with an external database",
     .help = "Master key of everything that is hashed or signed, the same on all instances of one database. Make one "
             "with `openssl rand -base64 32`."},
    {RUNNING, ROW("JWT_SECRET", secret, jwt_secret, const char *), .min = JWT_SECRET_MIN, .max = JWT_SECRET_MAX,
     .standard_words = "none",
     .help =
         "The secret that your identity provider signs bearer tokens with (HS256): Supabase's JWT secret. Without this "
         "or one of the next two only Reclaim's own tokens (`/auth/login`, `reclaim token`) and API keys are "
         "accepted."},
    {RUNNING, ROW("JWKS_FILE", string, jwks_file, const char *), .min = 1, .max = 1024, .standard_words = "none",
     .reloadable = true,
     .help =
         "Instead of the secret or beside it: a file with a JSON Web Key Set, the public keys of tokens signed with "
         "RS256, ES256 or EdDSA, and secrets (`oct`) of those signed with HS256. SIGHUP reads the file again."},
    {RUNNING, ROW("JWKS_URL", http_url, jwks_url, const char *), .standard_words = "none",
     .help = "The same from your identity provider, public keys only; on Supabase "
             "`https://PROJECT.supabase.co/auth/v1/.well-known/jwks.json`. Read at start, every 10 minutes, and when a "
             "token "
             "names an unknown key; while it cannot be reached the last set counts. Needs the next two settings."},
    {RUNNING, ROW("JWT_ISSUER", string, jwt_issuer, const char *), .min = 1, .max = JWT_NAME_MAX,
     .standard_words = "none",
     .help = "What your identity provider's tokens must have as `iss`, on Supabase "
             "`https://PROJECT.supabase.co/auth/v1`. Without it every issuer whose signature is right is accepted; "
             "required with `RECLAIM_JWKS_URL`."},
    {RUNNING, ROW("JWT_AUDIENCE", string, jwt_audience, const char *), .min = 1, .max = JWT_NAME_MAX,
     .standard_words = "none",
     .help = "What they must have as `aud`, or among it; on Supabase `authenticated`. Supabase's legacy `service_role` "
             "token has no audience: use a key of scope `admin` instead. Required with `RECLAIM_JWKS_URL`."},
    {RUNNING, ROW("LOG_LEVEL", choice, log_level, enum log_level), .choices = level_words, .standard = "info",
     .reloadable = true, .help = "Log lines below this level are dropped."},
    {RUNNING, ROW("ACCESS_LOG", switch, access_log, bool), .standard = "on", .reloadable = true,
     .help = "One log line for each request to the public listener: route, method, status, outcome, milliseconds and "
             "correlation id."},
};

const size_t settings_count = COUNT_OF(settings_rows);
_Static_assert(COUNT_OF(settings_rows) <= SETTINGS_MAX, "struct settings_origin has a place for every row");

bool setting_is_secret(const struct setting *row)
{
    return row->type == &setting_secret || row->type == &setting_database || row->type == &setting_http_url ||
           row->type == &setting_smtp_url || row->type == &setting_amqp_url || row->type == &setting_hook_secret ||
           row->type == &setting_storage_key;
}

const struct setting *setting_find(const char *name, bool *ret_from_file)
{
    size_t len = strlen(name);
    size_t stem = len > 5 && strcmp(name + len - 5, "_FILE") == 0 ? len - 5 : len;
    const struct setting *behind_file = NULL;
    for (size_t i = 0; i < settings_count; i++) {
        const struct setting *row = &settings_rows[i];
        if (strcmp(row->name, name) == 0) {
            *ret_from_file = false;
            return row;
        }
        if (stem < len && strlen(row->name) == stem && memcmp(row->name, name, stem) == 0)
            behind_file = row;
    }
    *ret_from_file = true;
    return behind_file;
}

#define NAME_MAX_LEN 48

/* The Levenshtein distance: letters to add, drop or change. */
static size_t distance(const char *a, const char *b)
{
    size_t row[NAME_MAX_LEN + 1];
    size_t b_len = strlen(b);
    for (size_t j = 0; j <= b_len; j++)
        row[j] = j;
    for (size_t i = 0; a[i]; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < b_len; j++) {
            size_t change = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            size_t add_or_drop = (row[j] < row[j + 1] ? row[j] : row[j + 1]) + 1;
            row[j + 1] = change < add_or_drop ? change : add_or_drop;
        }
    }
    return row[b_len];
}

const char *setting_nearest(const char *name)
{
    char wanted[NAME_MAX_LEN + 1];
    bool prefixed = strncasecmp(name, "RECLAIM_", 8) == 0;
    int len = snprintf(wanted, sizeof wanted, "%s%s", prefixed ? "" : "RECLAIM_", name);
    if (len < 0 || (size_t)len >= sizeof wanted)
        return NULL;
    for (char *at = wanted; *at; at++)
        *at = (char)toupper((unsigned char)*at);

    const char *nearest = NULL;
    size_t least = 4; /* more than three letters apart is another name */
    for (size_t i = 0; i < settings_count; i++) {
        size_t d = distance(wanted, settings_rows[i].name);
        if (d < least && d * 2 < strlen(settings_rows[i].name) - 8) {
            least = d;
            nearest = settings_rows[i].name;
        }
    }
    return nearest;
}

void setting_show(const struct setting *row, struct str text, struct buf *out)
{
    enum { MOST = 96 };
    AUTO(buf) struct buf seen = buf_new((size_t)64 << 10);
    if (row->type->show)
        row->type->show(text, &seen);
    else
        buf_add(&seen, text);
    struct str all = buf_str(&seen);
    for (size_t i = 0; i < all.len && i < MOST;) {
        struct str rest = {all.at + i, all.len - i};
        size_t len = str_utf8_len(rest);
        bool printable = len > 1 || (len == 1 && rest.at[0] >= ' ' && rest.at[0] != 0x7f);
        buf_add(out, printable ? (struct str){rest.at, len} : STR("?"));
        i += len ? len : 1;
    }
    if (all.len > MOST)
        buf_addz(out, "…");
}
