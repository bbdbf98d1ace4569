#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/embedded.h"
#include "base/random.h"
#include "cli/init.h"
#include "settings/keys.h"

#define SECRET_BYTES 32
#define FILE_MAX ((size_t)256 << 10)

static const char *path_of(struct init *in, const char *name)
{
    return arena_printf(in->arena, "%s/%s", in->directory, name).at;
}

enum err init_check_folder(struct init *in, const char *given)
{
    char absolute[PATH_MAX];
    if (mkdir(given, 0700) != 0 && errno != EEXIST)
        return why_set(in->why, ERR_SYSTEM, "the folder %s cannot be made: %s; name another with --output", given,
                       strerror(errno));
    if (!realpath(given, absolute) || !(in->directory = arena_copy(in->arena, str_of(absolute)).at))
        return why_set(in->why, ERR_SYSTEM, "the folder %s cannot be found: %s", given, strerror(errno));
    const char *probe = path_of(in, ".reclaim-init"), *settings = path_of(in, INIT_SETTINGS_FILE);
    int fd = probe ? open(probe, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (fd < 0)
        return why_set(in->why, ERR_SYSTEM, "files cannot be written in %s: %s; name another folder with --output",
                       in->directory, strerror(errno));
    close(fd);
    (void)unlink(probe);
    if (!in->force && settings && access(settings, F_OK) == 0)
        return why_set(
            in->why, ERR_CONFLICT,
            "%s exists and was left as it is: start with reclaim serve --config %s, write it anew with --force, "
            "or name another folder with --output",
            settings, settings);
    return OK;
}

const char *init_read_file(struct init *in, const char *name)
{
    const char *path = path_of(in, name);
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    char text[8192];
    if (fd < 0)
        return NULL;
    ssize_t len = read(fd, text, sizeof text);
    close(fd);
    struct str line = str_trim((struct str){text, len > 0 ? (size_t)len : 0});
    const char *copy = line.len ? arena_copy(in->arena, line).at : NULL;
    secret_wipe(text, sizeof text);
    return copy;
}

const char *init_new_secret(struct arena *arena)
{
    unsigned char bytes[SECRET_BYTES];
    char text[sodium_base64_ENCODED_LEN(SECRET_BYTES, sodium_base64_VARIANT_URLSAFE_NO_PADDING)];
    random_bytes(bytes, sizeof bytes);
    sodium_bin2base64(text, sizeof text, bytes, sizeof bytes, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    const char *copy = arena_copy(arena, str_of(text)).at;
    secret_wipe(bytes, sizeof bytes);
    secret_wipe(text, sizeof text);
    return copy;
}

enum err init_find_key(struct init *in)
{
    struct digest fingerprint;
    char hex[DIGEST_HEX_LEN + 1];
    const char *given = getenv("RECLAIM_SECRET_KEY");
    in->key = init_read_file(in, INIT_KEY_FILE);
    if (!in->key && given && *given)
        in->key = arena_copy(in->arena, str_of(given)).at;
    if (!in->key)
        in->key = init_new_secret(in->arena);
    if (!in->key || digest_derive(str_of(in->key), FINGERPRINT_PURPOSE, &fingerprint))
        return why_set(in->why, ERR_MEMORY, "no memory for the master key");
    digest_hex(&fingerprint, hex);
    if (!in->fingerprint[0] || strcmp(hex, in->fingerprint) == 0)
        return OK;
    return why_set(
        in->why, ERR_CONFLICT,
        "Reclaim is set up in this database already, with another master key: put that key into %s/" INIT_KEY_FILE
        " first (copy the file from the other installation)",
        in->directory);
}

/* Written under another name and renamed: never seen incomplete, never readable by others. */
static enum err write_file(struct init *in, const char *name, struct str text)
{
    const char *path = path_of(in, name), *temporary = arena_printf(in->arena, "%s/.%s.new", in->directory, name).at;
    int fd = path && temporary ? open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
    bool written = fd >= 0 && fchmod(fd, 0600) == 0 && text.at && write(fd, text.at, text.len) == (ssize_t)text.len &&
                   fsync(fd) == 0;
    int error = errno;
    if (fd >= 0)
        close(fd);
    if (written && rename(temporary, path) == 0)
        return OK;
    error = written ? errno : error;
    if (fd >= 0)
        (void)unlink(temporary);
    return why_set(in->why, ERR_SYSTEM, "%s/%s cannot be written: %s", in->directory, name, strerror(error));
}

static enum err write_line(struct init *in, const char *name, const char *line)
{
    struct str text = arena_printf(in->arena, "%s\n", line);
    return text.at ? write_file(in, name, text) : why_set(in->why, ERR_MEMORY, "no memory for %s", name);
}

static void write_settings(const struct init *in, struct buf *out)
{
    buf_addf(out,
             "; Written by reclaim init. Secrets are in files beside it. Every other setting: reclaim help settings\n\n"
             "[Database]\nRECLAIM_DATABASE_URL_FILE = %s/" INIT_URL_FILE "\n",
             in->directory);
    if (in->role_direct_url)
        buf_addf(out, "RECLAIM_DATABASE_DIRECT_URL_FILE = %s/" INIT_DIRECT_FILE "\n", in->directory);
    buf_addf(out, "RECLAIM_SECRET_KEY_FILE = %s/" INIT_KEY_FILE "\n", in->directory);
    if (in->ownership)
        buf_addf(out, "RECLAIM_OWNERSHIP = %s\n", in->ownership);
    else
        buf_addz(out, "; RECLAIM_OWNERSHIP = companies.owner_id,profiles.id where onboarded_at is not null\n");
    if (init_users_are_customers(in))
        buf_addz(out, "\n[Account deletion]\n; each user of auth.users is a customer of the same id\n"
                      "RECLAIM_CUSTOMERS = users\n");
    buf_addz(out, "\n[Tokens of your users]\n");
    if (in->supabase)
        buf_addf(out,
                 "RECLAIM_JWKS_URL = %1$s/auth/v1/.well-known/jwks.json\nRECLAIM_JWT_ISSUER = %1$s/auth/v1\n"
                 "RECLAIM_JWT_AUDIENCE = authenticated\n; a project with the legacy JWT secret:\n"
                 "; RECLAIM_JWT_SECRET_FILE = %2$s/reclaim-jwt-secret\n",
                 in->supabase, in->directory);
    else
        buf_addz(out,
                 "; RECLAIM_JWKS_URL = https://REF.supabase.co/auth/v1/.well-known/jwks.json\n"
                 "; RECLAIM_JWT_ISSUER = https://REF.supabase.co/auth/v1\n; RECLAIM_JWT_AUDIENCE = authenticated\n");
    buf_addz(out, "\n[Mail]\n; who sends the codes: Resend, SendGrid or SMTP\n"
                  "; RECLAIM_MAIL_FROM = Example <no-reply@example.com>\n"
                  "; RECLAIM_SMTP_URL_FILE = reclaim-smtp-url\n"
                  "\n[HTTP]\n; nginx of this machine, as in reclaim-nginx.conf\nRECLAIM_TRUSTED_PROXIES = 127.0.0.1\n");
}

static void write_role(const struct init *in, struct buf *out)
{
    buf_addf(
        out,
        "-- What the role %s needs; reclaim init runs it where the given role may. It can be repeated. Run it as the\n"
        "-- owner of these tables or with the grant option, on Supabase as postgres. CREATE POLICY locks its table for "
        "a\n"
        "-- moment: outside of busy hours.\n%s",
        in->uses_given ? in->user : in->role, in->grants);
    for (size_t i = 0; i < in->policy_count; i++)
        buf_addf(out, "%s;\n", in->policies[i]);
}

static void add_quoted(struct buf *out, const char *text)
{
    buf_addz(out, "'");
    for (; *text; text++)
        buf_add(out, *text == '\'' ? STR("'\\''") : (struct str){text, 1});
    buf_addz(out, "'");
}

static void write_participants(const struct init *in, struct buf *out)
{
    buf_addf(out,
             "# Tables with rows of users, as participants of erasures: with them a deleted account's rows are "
             "deleted, counted\n"
             "# and certified. Take out what you must keep, then: sh reclaim-participants.sh\n"
             "# Each needs GRANT SELECT, DELETE ON its table TO %s (reclaim doctor says so).\nset -eu\n",
             in->uses_given ? in->user : in->role);
    for (size_t i = 0; i < in->table_count; i++) {
        const struct init_table *t = &in->tables[i];
        bool is_public = strcmp(t->schema, "public") == 0;
        buf_addf(out, "# %s\n",
                 t->on_delete == 'c'   ? "its rows go with the user anyway"
                 : t->on_delete == 'n' ? "its rows stay, without the user"
                                       : "its rows keep the user's login from being deleted");
        buf_addf(out, "reclaim cascade add ");
        AUTO(buf) struct buf name = buf_new(512), table = buf_new(512), settings = buf_new(PATH_MAX + 64);
        buf_addf(&name, "%s%s%s", is_public ? "" : t->schema, is_public ? "" : ".", t->table);
        buf_addf(&table, "%s.%s", t->schema, t->table);
        buf_addf(&settings, "%s/" INIT_SETTINGS_FILE, in->directory);
        add_quoted(out, buf_str(&name).at ? buf_str(&name).at : "");
        buf_addz(out, " --table ");
        add_quoted(out, buf_str(&table).at ? buf_str(&table).at : "");
        buf_addz(out, " --column ");
        add_quoted(out, t->column);
        buf_addz(out, " --by user --config ");
        add_quoted(out, buf_str(&settings).at ? buf_str(&settings).at : "");
        buf_addz(out, "\n");
    }
}

/* The proxy that the tests use, as it is. */
static struct str proxy_snippet(void)
{
    for (size_t i = 0; i < embedded_count; i++)
        if (strncmp(embedded_files[i].name, "deploy/nginx/", 13) == 0)
            return embedded_files[i].bytes;
    return (struct str){NULL, 0};
}

static enum err write_made(struct init *in, const char *name, void (*write_text)(const struct init *, struct buf *))
{
    AUTO(buf) struct buf text = buf_new(FILE_MAX);
    write_text(in, &text);
    return text.failed ? why_set(in->why, ERR_MEMORY, "no memory for %s", name) : write_file(in, name, buf_str(&text));
}

/* The settings come last: while they are missing, the next run begins anew. */
enum err init_write_files(struct init *in)
{
    enum err e = write_line(in, INIT_KEY_FILE, in->key);
    if (!e)
        e = write_line(in, INIT_URL_FILE, in->role_url);
    if (!e && in->role_direct_url)
        e = write_line(in, INIT_DIRECT_FILE, in->role_direct_url);
    if (!e)
        e = write_made(in, INIT_ROLE_FILE, write_role);
    if (!e && in->table_count)
        e = write_made(in, "reclaim-participants.sh", write_participants);
    if (!e)
        e = write_file(in, "reclaim-nginx.conf", proxy_snippet());
    return e ? e : write_made(in, INIT_SETTINGS_FILE, write_settings);
}
