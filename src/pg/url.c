#include "pg/url.h"

#include <string.h>

#include "pg/inside.h"

static const char *option(const PQconninfoOption *options, const char *key)
{
    const char *value = pg_option(options, key);
    return value && *value ? value : NULL;
}

static enum err parse(const char *url, PQconninfoOption **ret, struct why *why)
{
    enum err e = pg_check_url(url, why);
    return e ? e : pg_parse_url(url, ret, why);
}

static enum err copy_first(const char *list, char *into, size_t size, struct why *why)
{
    struct str rest = str_of(list ? list : ""), first;
    if (!str_split(&rest, ',', &first) || str_copy(first, into, size))
        return why_set(why, ERR_INPUT, "the database URL has a part that is longer than %zu bytes", size - 1);
    return OK;
}

enum err pg_url_read(const char *url, struct pg_target *ret, struct why *why)
{
    PQconninfoOption *options = NULL;
    enum err e = parse(url, &options, why);
    if (e)
        return e;
    const char *host = option(options, "host");
    if ((e = copy_first(host ? host : option(options, "hostaddr"), ret->host, sizeof ret->host, why)) == OK &&
        (e = copy_first(option(options, "port"), ret->port, sizeof ret->port, why)) == OK)
        e = copy_first(option(options, "user"), ret->user, sizeof ret->user, why);
    pg_options_free(options);
    return e;
}

static void add_encoded(struct buf *out, const char *text)
{
    for (; *text; text++) {
        char c = *text;
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("-._~", c);
        if (plain)
            buf_add(out, (struct str){text, 1});
        else
            buf_addf(out, "%%%02X", (unsigned char)c);
    }
}

/* Lists of hosts and paths of sockets stand behind the question mark. */
static bool fits_authority(const char *host, const char *port)
{
    return host && host[0] != '/' && !strpbrk(host, ",:") && (!port || !strchr(port, ','));
}

static void write_url(const PQconninfoOption *options, const struct pg_url_change *change, struct buf *out)
{
    const char *user = change->user ? change->user : option(options, "user");
    const char *password = change->password ? change->password : change->user ? NULL : option(options, "password");
    const char *database = change->database ? change->database : option(options, "dbname");
    const char *host = option(options, "host"), *port = change->port ? change->port : option(options, "port");
    bool authority = fits_authority(host, port);
    buf_addz(out, "postgresql://");
    if (user)
        add_encoded(out, user);
    if (password) {
        buf_addz(out, ":");
        add_encoded(out, password);
    }
    buf_addz(out, user ? "@" : "");
    if (authority)
        buf_addf(out, "%s%s%s", host, port ? ":" : "", port ? port : "");
    buf_addz(out, "/");
    if (database)
        add_encoded(out, database);
    char separator = '?';
    for (const PQconninfoOption *o = options; o->keyword; o++) {
        bool written = strcmp(o->keyword, "user") == 0 || strcmp(o->keyword, "password") == 0 ||
                       strcmp(o->keyword, "dbname") == 0 || (authority && strcmp(o->keyword, "host") == 0) ||
                       (authority && strcmp(o->keyword, "port") == 0);
        const char *value = strcmp(o->keyword, "port") == 0 ? port : o->val;
        if (written || !value || !*value)
            continue;
        buf_addf(out, "%c%s=", separator, o->keyword);
        add_encoded(out, value);
        separator = '&';
    }
}

enum err pg_url_with(const char *url, const struct pg_url_change *change, struct buf *out, struct why *why)
{
    PQconninfoOption *options = NULL;
    enum err e = parse(url, &options, why);
    if (e)
        return e;
    write_url(options, change, out);
    pg_options_free(options);
    return out->failed ? why_set(why, ERR_MEMORY, "no memory for the database URL") : OK;
}

enum err pg_password_verifier(struct pg *pg, const char *user, const char *password, char into[PG_VERIFIER_MAX])
{
    char *verifier = pg->conn ? PQencryptPasswordConn(pg->conn, password, user, "scram-sha-256") : NULL;
    if (!verifier)
        return ERR_SYSTEM;
    enum err e = str_copy(str_of(verifier), into, PG_VERIFIER_MAX);
    PQfreemem(verifier);
    return e;
}
