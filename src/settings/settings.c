#include "settings/settings.h"

#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "settings/table.h"

static struct settings *settings_new(const char *config_file)
{
    struct settings *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->origin = calloc(1, sizeof *s->origin);
    if (s->origin)
        s->origin->arena = arena_new(4096, (size_t)4 << 20);
    if (s->origin && s->origin->arena && config_file)
        s->origin->config_file = arena_copy(s->origin->arena, str_of(config_file)).at;
    if (!s->origin || !s->origin->arena || (config_file && !s->origin->config_file)) {
        settings_free(s);
        return NULL;
    }
    return s;
}

void settings_free(struct settings *s)
{
    if (!s)
        return;
    for (size_t i = 0; s->origin && i < settings_count; i++) {
        struct given *g = &s->origin->given[i];
        if (g->text && setting_is_secret(&settings_rows[i]))
            secret_wipe(g->text, strlen(g->text));
    }
    if (s->origin)
        arena_free(s->origin->arena);
    free(s->origin);
    free(s);
}

void settings_cleanup(struct settings **s)
{
    settings_free(*s);
}

static enum err give_default(const struct setting *row, struct arena *arena, struct given *g)
{
    char computed[32];
    const char *text = row->standard;
    if (row->compute) {
        row->compute(computed, sizeof computed);
        text = computed;
    }
    if (g->text || !text)
        return OK;
    g->text = (char *)arena_copy(arena, str_of(text)).at;
    return g->text ? OK : ERR_MEMORY;
}

static enum err refuse(const struct setting *row, const struct given *g, struct str wrong, struct why *why)
{
    AUTO(buf) struct buf out = buf_new(sizeof why->text * 4);
    if (row->type == &setting_secret) {
        buf_addf(&out, "%s: its value (not shown)", row->name);
    } else {
        buf_addf(&out, "%s: \"", row->name);
        setting_show(row, wrong, &out);
        buf_addz(&out, "\"");
    }
    buf_addz(&out, " is not ");
    row->type->expects(row, &out);
    if (g->where)
        buf_addf(&out, " (%s)", g->where);
    struct str sentence = buf_str(&out);
    return why_set(why, ERR_INPUT, "%s", sentence.at ? sentence.at : row->name);
}

static enum err parse_all(struct settings *s, struct why *why)
{
    for (size_t i = 0; i < settings_count; i++) {
        const struct setting *row = &settings_rows[i];
        struct given *g = &s->origin->given[i];
        enum err e = give_default(row, s->origin->arena, g);
        struct str text = str_of(g->text), wrong = text;
        if (!e && text.at)
            e = row->type->parse(row, text, s->origin->arena, (char *)s + row->field, &wrong);
        if (e == ERR_INPUT)
            return refuse(row, g, wrong, why);
        if (e)
            return why_set(why, e, "%s: no memory for its value", row->name);
    }
    return OK;
}

static bool was_given(const struct settings *s, const char *name)
{
    bool from_file;
    return s->origin->given[setting_find(name, &from_file) - settings_rows].by != GIVEN_BY_DEFAULT;
}

static enum err check_hold(struct settings *s, struct why *why)
{
    long long hold = s->probe_hold_ms, sigma = s->probe_hold_sigma_ms, timeout = s->probe_timeout_ms;
    if (hold == 0)
        return OK;
    if (sigma * 2 > hold && was_given(s, "RECLAIM_PROBE_HOLD_SIGMA_MS"))
        return why_set(
            why, ERR_INPUT,
            "RECLAIM_PROBE_HOLD_SIGMA_MS: \"%lld\" is not at most half of RECLAIM_PROBE_HOLD_MS (%lld), since "
            "the jitter is cut at twice this value",
            sigma, hold);
    if (sigma * 2 > hold)
        s->probe_hold_sigma_ms = hold / 2;
    if (timeout >= hold && was_given(s, "RECLAIM_PROBE_TIMEOUT_MS"))
        settings_warn(
            s, arena_printf(s->origin->arena,
                            "RECLAIM_PROBE_TIMEOUT_MS (%lld) is not below RECLAIM_PROBE_HOLD_MS (%lld): a slow "
                            "company query delays its answer by a whole number of holds, which a client can measure",
                            timeout, hold));
    return OK;
}

bool settings_is_sandbox(const struct settings *s, bool demo)
{
    return s->sandbox == SANDBOX_ON || (s->sandbox == SANDBOX_AS_DEMO && demo);
}

/* Checks settings that depend on each other. */
static enum err check_together(struct settings *s, struct why *why)
{
    if (s->database_direct_url && !s->database_url)
        return why_set(why, ERR_INPUT,
                       "RECLAIM_DATABASE_DIRECT_URL is set without RECLAIM_DATABASE_URL: set both, or neither for the "
                       "private cluster");
    if (!s->database_direct_url)
        s->database_direct_url = s->database_url;
    if (!s->journal && !(s->journal = arena_printf(s->origin->arena, "%s/journal", s->data_dir).at))
        return why_set(why, ERR_MEMORY, "no memory for the settings");
    if (!was_given(s, "RECLAIM_SANDBOX"))
        s->sandbox = SANDBOX_AS_DEMO;
    if (!s->mail_from && (s->resend_api_key || s->sendgrid_api_key || s->smtp_url))
        return why_set(why, ERR_INPUT, "RECLAIM_MAIL_FROM is not set, but %s is: mails need a sender",
                       s->resend_api_key     ? "RECLAIM_RESEND_API_KEY"
                       : s->sendgrid_api_key ? "RECLAIM_SENDGRID_API_KEY"
                                             : "RECLAIM_SMTP_URL");
    if (!s->storage_url != !s->storage_key)
        return why_set(why, ERR_INPUT, "%s is not set, but %s is: the Storage API needs both",
                       s->storage_url ? "RECLAIM_STORAGE_KEY" : "RECLAIM_STORAGE_URL",
                       s->storage_url ? "RECLAIM_STORAGE_URL" : "RECLAIM_STORAGE_KEY");
    if (s->jwt_issuer && strcmp(s->jwt_issuer, JWT_OWN_NAME) == 0)
        return why_set(
            why, ERR_INPUT,
            "RECLAIM_JWT_ISSUER: \"%s\" is not an identity provider: it is the issuer of Reclaim's own tokens",
            s->jwt_issuer);
    if (s->jwks_url && (!s->jwt_issuer || !s->jwt_audience))
        return why_set(
            why, ERR_INPUT,
            "%s: not set, and RECLAIM_JWKS_URL needs it: whoever else has tokens of these keys is kept out by "
            "issuer and audience (on Supabase https://PROJECT.supabase.co/auth/v1 and authenticated)",
            s->jwt_issuer ? "RECLAIM_JWT_AUDIENCE" : "RECLAIM_JWT_ISSUER");
    size_t len = strlen(s->listen);
    bool any_port = len > 2 && strcmp(s->listen + len - 2, ":0") == 0;
    if (!any_port && strcmp(s->listen, s->ops_listen) == 0)
        return why_set(why, ERR_INPUT, "RECLAIM_OPS_LISTEN: \"%s\" is not another address than RECLAIM_LISTEN's",
                       s->ops_listen);
    return check_hold(s, why);
}

/* Restores the old value of settings that cannot change while the program runs. */
static enum err keep_fixed(struct settings *s, const struct settings *old, struct why *why)
{
    for (size_t i = 0; i < settings_count; i++) {
        const struct setting *row = &settings_rows[i];
        const struct given *was = &old->origin->given[i];
        struct given *g = &s->origin->given[i];
        if (row->reloadable)
            continue;
        if (give_default(row, s->origin->arena, g))
            return why_set(why, ERR_MEMORY, "no memory for the settings");
        if (str_eq(str_of(g->text), str_of(was->text)))
            continue;
        if (g->by != GIVEN_BY_DEFAULT || was->by != GIVEN_BY_DEFAULT)
            settings_warn(
                s, arena_printf(s->origin->arena, "%s has changed; the new value is used after a restart", row->name));
        if (g->text)
            secret_wipe(g->text, strlen(g->text));
        *g = (struct given){.by = was->by};
        if (was->text)
            g->text = (char *)arena_copy(s->origin->arena, str_of(was->text)).at;
        if (was->text && !g->text)
            return why_set(why, ERR_MEMORY, "no memory for the settings");
    }
    return OK;
}

static enum err load(const char *config_file, const struct settings *old, struct settings **ret, struct why *why)
{
    struct settings *s = settings_new(config_file);
    if (!s)
        return why_set(why, ERR_MEMORY, "no memory for the settings");
    enum err e = settings_gather(s, why);
    if (!e && old)
        e = keep_fixed(s, old, why);
    if (!e)
        e = parse_all(s, why);
    if (!e)
        e = check_together(s, why);
    if (e) {
        settings_free(s);
        return e;
    }
    *ret = s;
    return OK;
}

enum err settings_load(const char *config_file, struct settings **ret, struct why *why)
{
    return load(config_file, NULL, ret, why);
}

enum err settings_reload(const struct settings *old, struct settings **ret, struct why *why)
{
    return load(old->origin->config_file, old, ret, why);
}

struct tier_table settings_tiers(const struct settings *s)
{
    return (struct tier_table){.of = {
                                   [TIER_GLOBAL] = s->limit_global,
                                   [TIER_GLOBAL_VALIDATE] = s->limit_global,
                                   [TIER_IP] = s->limit_ip,
                                   [TIER_IP_SITE] = limit_of_many(s->limit_ip),
                                   [TIER_EMAIL] = s->limit_email,
                                   [TIER_EMAIL_VALIDATE] = s->limit_email,
                                   [TIER_PROBE] = s->limit_probe,
                                   [TIER_PROBE_SITE] = limit_of_many(s->limit_probe),
                                   [TIER_LOGIN] = s->limit_login,
                                   [TIER_LOGIN_ADDRESS] = limit_of_many(s->limit_login),
                                   [TIER_LOGIN_IP] = s->limit_login,
                                   [TIER_LOGIN_IP_SITE] = limit_of_many(s->limit_login),
                                   [TIER_CODE] = s->limit_email,
                                   [TIER_CODE_IP] = s->limit_login,
                                   [TIER_CODE_IP_SITE] = limit_of_many(s->limit_login),
                               }};
}

bool settings_has_mailbox(const struct settings *s, bool demo)
{
    return demo && !s->resend_api_key && !s->sendgrid_api_key && !s->smtp_url;
}

bool settings_shows_mailbox(const struct settings *s, bool demo)
{
    const char *colon = strrchr(s->listen, ':');
    struct ip ip;
    struct cidr v4, v6;
    if (!settings_has_mailbox(s, demo) || !colon || ip_parse((struct str){s->listen, (size_t)(colon - s->listen)}, &ip))
        return false;
    return cidr_parse(STR("127.0.0.0/8"), &v4) == OK && cidr_parse(STR("::1"), &v6) == OK &&
           (cidr_holds(&v4, &ip) || cidr_holds(&v6, &ip));
}

enum err settings_token_keys(const struct settings *s, const struct digest *own, struct str jwks_read,
                             struct jwt_keys **ret, struct why *why)
{
    const struct jwt_sources from = {.own = own,
                                     .secret = s->jwt_secret,
                                     .jwks_path = s->jwks_file,
                                     .jwks_read = jwks_read,
                                     .issuer = s->jwt_issuer,
                                     .audience = s->jwt_audience};
    return jwt_keys_new(&from, ret, why);
}

struct mail_settings settings_mail(const struct settings *s, bool demo)
{
    return (struct mail_settings){.from = s->mail_from ? s->mail_from : "Reclaim <reclaim@example.com>",
                                  .resend_api_key = s->resend_api_key,
                                  .resend_url = s->resend_url,
                                  .sendgrid_api_key = s->sendgrid_api_key,
                                  .sendgrid_url = s->sendgrid_url,
                                  .smtp_url = s->smtp_url,
                                  .mailbox = settings_has_mailbox(s, demo)};
}
