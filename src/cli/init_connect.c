#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/ask.h"
#include "cli/doctor_tokens.h"
#include "cli/init.h"
#include "server/database.h"

#define CONNECT_NS (10 * NS_PER_S)

static bool ends(const char *text, const char *with)
{
    size_t len = strlen(text), end = strlen(with);
    return len >= end && strcmp(text + len - end, with) == 0;
}

static bool is_hosted_pooler(const struct pg_target *t)
{
    return ends(t->host, ".pooler.supabase.com");
}

static bool is_hosted_direct(const struct pg_target *t)
{
    return strncmp(t->host, "db.", 3) == 0 && ends(t->host, ".supabase.co");
}

/* The project's REF: db.REF.supabase.co, or the user postgres.REF of the pooler that projects share. */
static const char *project_of(struct arena *arena, const struct pg_target *t)
{
    const char *dot = strrchr(t->user, '.');
    if (is_hosted_direct(t))
        return arena_copy(arena, (struct str){t->host + 3, strlen(t->host) - 3 - strlen(".supabase.co")}).at;
    return is_hosted_pooler(t) && dot && dot[1] ? arena_copy(arena, str_of(dot + 1)).at : NULL;
}

/* What to do about a connection that failed, by libpq's sentence. */
static enum err explain(struct init *in, enum err e, const struct pg_target *t, const struct why *said)
{
    const char *text = said->text;
    bool unreachable = strstr(text, "Network is unreachable") || strstr(text, "Cannot assign requested address") ||
                       strstr(text, "could not translate host name");
    if (is_hosted_direct(t) && unreachable)
        return why_set(
            in->why, e,
            "%s cannot be reached: the direct host of a hosted project has an IPv6 address only. On a machine "
            "without IPv6 use the session pooler (Connect, Session pooler, in Supabase's dashboard: user "
            "postgres.%s, port 5432)",
            t->host, in->project ? in->project : "REF");
    if (strstr(text, "could not translate host name"))
        return why_set(in->why, e, "the host %s is not known: check the database URL", t->host);
    if (strstr(text, "28P01") || strstr(text, "password authentication failed"))
        return why_set(
            in->why, e,
            "the password of %s was refused: check it in the database URL, where @ is written %%40, / %%2F and "
            ": %%3A; on Supabase it is the database password, which Settings, Database resets",
            t->user);
    if (strstr(text, "no password supplied"))
        return why_set(in->why, e, "the server asks for a password: put it into the database URL, user:PASSWORD@host");
    if (strstr(text, "Tenant or user not found"))
        return why_set(in->why, e, "Supabase's pooler does not know %s: its users are called postgres.REF", t->user);
    if (strstr(text, "3D000"))
        return why_set(in->why, e, "%s: check the name behind the host in the database URL", text);
    return why_set(in->why, e, "the database cannot be reached: %s", text);
}

static enum err open_one(struct init *in, const char *url, struct pg **ret)
{
    struct why said = {""};
    struct pg_target t;
    enum err e = pg_url_read(url, &t, in->why);
    if (e)
        return e;
    struct pg *pg = pg_new(url, PG_PREPARE_OFF);
    e = pg ? pg_connect(pg, clock_ns() + CONNECT_NS, &said) : why_set(&said, ERR_MEMORY, "no memory");
    if (e) {
        pg_free(pg);
        return explain(in, e, &t, &said);
    }
    *ret = pg;
    return OK;
}

/* Supabase's own pooler has both modes, by port. */
static const char *session_url(struct init *in)
{
    AUTO(buf) struct buf url = buf_new(4096);
    struct why why;
    if (!is_hosted_pooler(&in->target) || pg_url_with(in->url, &(struct pg_url_change){.port = "5432"}, &url, &why))
        return NULL;
    return arena_copy(in->arena, buf_str(&url)).at;
}

/* Leadership, LISTEN and migrations need a session. */
static enum err find_direct(struct init *in)
{
    const char *url = in->direct_url ? in->direct_url : session_url(in);
    fprintf(stderr,
            "%s:%s is a pooler in transaction mode; leadership, LISTEN and migrations need a connection of their "
            "own%s\n",
            in->target.host[0] ? in->target.host : "the server", in->target.port,
            url && !in->direct_url ? ", for which its session mode on port 5432 is used" : "");
    if (!url && in->asks)
        url = ask_secret(in->arena, "URL of the PostgreSQL server itself (not shown)");
    if (!url || !*url)
        return why_set(
            in->why, ERR_INPUT,
            "the database URL goes through a pooler in transaction mode: give the URL of the PostgreSQL server "
            "itself too, with --direct-url; it becomes RECLAIM_DATABASE_DIRECT_URL");
    in->direct_url = url;
    pg_free(in->pg);
    in->pg = NULL;
    enum err e = open_one(in, url, &in->pg);
    if (!e && pg_require_direct(in->pg, in->why))
        e = why_set(in->why, ERR_INPUT, "--direct-url goes through a pooler too: name the PostgreSQL server itself");
    return e;
}

enum err init_connect(struct init *in)
{
    enum err e = pg_url_read(in->url, &in->target, in->why);
    if (e)
        return e;
    in->project = project_of(in->arena, &in->target);
    if ((e = open_one(in, in->url, &in->pg)))
        return e;
    bool transactions = pg_is_pooled(in->pg) || (is_hosted_pooler(&in->target) && strcmp(in->target.port, "6543") == 0);
    if (!transactions && in->direct_url)
        return why_set(in->why, ERR_INPUT,
                       "--direct-url is for a database URL that goes through a pooler in transaction "
                       "mode, and this one does not");
    return transactions ? find_direct(in) : OK;
}

static void keep_failure(void *context, const struct finding *finding)
{
    struct why *why = context;
    if (finding->severity == SEVERITY_FAILURE)
        (void)why_set(why, ERR_INPUT, "%s", finding->sentence);
}

enum err init_check_project(struct init *in)
{
    if (!in->supabase && in->project)
        in->supabase = arena_printf(in->arena, "https://%s.supabase.co", in->project).at;
    if (!in->supabase && in->is_supabase && in->asks)
        in->supabase = ask_line(in->arena, "URL of the project's API, whose tokens are accepted (empty: none)", "");
    if (!in->supabase || !*in->supabase) {
        in->supabase = NULL;
        return OK;
    }
    struct str base = str_of(in->supabase);
    while (base.len && base.at[base.len - 1] == '/')
        base.len--;
    in->supabase = arena_copy(in->arena, base).at;
    struct settings *s = arena_take(in->arena, sizeof *s);
    struct why said = {""};
    if (!s || !in->supabase)
        return why_set(in->why, ERR_MEMORY, "no memory");
    s->jwks_url = arena_printf(in->arena, "%s/auth/v1/.well-known/jwks.json", in->supabase).at;
    s->jwt_issuer = arena_printf(in->arena, "%s/auth/v1", in->supabase).at;
    s->jwt_audience = "authenticated";
    if (!s->jwks_url || !s->jwt_issuer)
        return why_set(in->why, ERR_MEMORY, "no memory");
    doctor_check_tokens(s, keep_failure, &said);
    return said.text[0] ? why_set(in->why, ERR_INPUT, "%s: check --supabase, the address of the project's API (%s)",
                                  said.text, in->supabase)
                        : OK;
}
