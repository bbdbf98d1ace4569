/* `reclaim init`: looks at a database, writes the settings of a server beside it, and sets the database up for it. */
#include "cli/init.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "cli/ask.h"
#include "cli/commands.h"
#include "cli/doctor.h"
#include "pg/adoption.h"
#include "pg/migrate.h"
#include "server/database.h"

#define MIGRATE_NS (600 * NS_PER_S)

/* The arguments of a process can be read by every user of the machine: what may be secret is taken out of them. */
static const char *take_secret(struct command_context *c, const char *name)
{
    const char *given = option(c, name);
    if (!given)
        return NULL;
    const char *copy = arena_copy(c->arena, str_of(given)).at;
    memset((char *)given, '*', strlen(given));
    return copy;
}

enum err init_read(struct command_context *c)
{
    struct init *in = arena_take(c->arena, sizeof *in);
    if (!in)
        return why_set(&c->why, ERR_MEMORY, "no memory");
    c->input = in;
    *in = (struct init){.arena = c->arena,
                        .why = &c->why,
                        .applies = option(c, "--apply"),
                        .files_only = option(c, "--files-only"),
                        .force = option(c, "--force"),
                        .same_role = option(c, "--same-role"),
                        .names_role = option(c, "--role"),
                        .asks = !option(c, "--yes"),
                        .url = take_secret(c, "--database-url"),
                        .direct_url = take_secret(c, "--direct-url"),
                        .supabase = option(c, "--supabase"),
                        .role = option(c, "--role") ? option(c, "--role") : "reclaim",
                        .ownership = option(c, "--ownership"),
                        .balance = option(c, "--balance")};
    if (in->applies && in->files_only)
        return why_set(&c->why, ERR_INPUT, "--apply and --files-only exclude each other");
    if (in->same_role && option(c, "--role"))
        return why_set(&c->why, ERR_INPUT, "--role and --same-role exclude each other");
    if (!*in->role || strlen(in->role) > 63 || strpbrk(in->role, "%$"))
        return why_set(&c->why, ERR_INPUT, "--role is the name of a role of 1 to 63 bytes, without %% and $");
    if (in->supabase && strncmp(in->supabase, "https://", 8) != 0 && strncmp(in->supabase, "http://", 7) != 0)
        return why_set(&c->why, ERR_INPUT,
                       "--supabase is the address of the project's API, such as "
                       "https://REF.supabase.co, not \"%s\"",
                       in->supabase);
    if (in->asks && !ask_can())
        return why_set(&c->why, ERR_INPUT,
                       "there is no terminal to ask questions on: give --yes to take what is proposed");
    return OK;
}

static enum err find_url(struct init *in)
{
    const char *set = getenv("RECLAIM_DATABASE_URL"), *direct = getenv("RECLAIM_DATABASE_DIRECT_URL");
    if (!in->url && set && *set) {
        in->url = arena_copy(in->arena, str_of(set)).at;
        in->direct_url = direct && *direct ? arena_copy(in->arena, str_of(direct)).at : in->direct_url;
    }
    if (!in->url && in->asks)
        in->url = ask_secret(in->arena, "Database URL, postgresql://user:password@host:port/database (not shown)");
    return in->url && *in->url
               ? OK
               : why_set(in->why, ERR_INPUT,
                         "which database? Give --database-url postgresql://user:password@host:port/database,"
                         " or the same in the environment as RECLAIM_DATABASE_URL");
}

static void print_found(const struct init *in)
{
    printf("Database   %s%s%s, PostgreSQL %s, %s\nUsers      %lld\n", in->database,
           in->target.host[0] && in->target.host[0] != '/' ? " at " : "",
           in->target.host[0] != '/' ? in->target.host : "", in->version,
           in->direct_url    ? "through a pooler in transaction mode"
           : in->project     ? "Supabase, hosted"
           : in->is_supabase ? "Supabase Auth"
                             : "with a table auth.users of its own",
           (long long)in->user_count);
    init_print_tables(in);
}

/* Columns of billing_accounts that may hold balances, which an adoption takes over only when told. */
static void note_balances(void *context, const struct pg_call *rows)
{
    struct init *in = context;
    for (int i = 0; i < rows->rows; i++) {
        if (str_eq(pg_get(rows, i, 0), STR("refused")) && !in->why->text[0])
            (void)why_set(in->why, ERR_INPUT, "%s, %s: %s (reclaim migrate --check says all of it)",
                          pg_get(rows, i, 1).at, pg_get(rows, i, 2).at, pg_get(rows, i, 3).at);
        if (!pg_is_null(rows, i, 4) && strstr(pg_get(rows, i, 4).at, "--balance"))
            printf("Balances   %s, %s\n", pg_get(rows, i, 2).at, pg_get(rows, i, 3).at);
    }
}

static enum err ask_balance(struct init *in)
{
    if (!in->adopts)
        return OK;
    printf("Adoption   your customer_customers or billing_accounts in schema public are taken over by the migration, "
           "as their\n"
           "           owner: %s is the server's role (docs/security.md, A role with few privileges, has two)\n",
           in->user);
    enum err e = adoption_check(in->pg, in->balance, clock_ns() + MIGRATE_NS, note_balances, in, in->why);
    if (e || in->why->text[0])
        return e ? e : ERR_INPUT;
    if (in->balance || !in->asks)
        return OK;
    const char *column =
        ask_line(in->arena, "Column of billing_accounts with the balance, COLUMN[:micros|cents]", "none");
    in->balance = strcmp(column, "none") == 0 ? NULL : column;
    return in->balance ? adoption_check(in->pg, in->balance, clock_ns() + MIGRATE_NS, note_balances, in, in->why) : OK;
}

/* As the server's own role, so that the schema is that role's. */
static enum err migrate(struct init *in)
{
    const struct schema *schema;
    struct migrate_report report;
    const char *url = in->role_direct_url ? in->role_direct_url : in->role_url;
    AUTO(pg) struct pg *pg = pg_new(url, PG_PREPARE_OFF);
    struct why said = {""};
    if (!pg || pg_connect(pg, clock_ns() + DATABASE_DEADLINE_NS, &said))
        return why_set(in->why, ERR_CLOSED, "the role %s cannot connect: %s", in->uses_given ? in->user : in->role,
                       said.text);
    enum err e = migrations_embedded(&schema, in->why);
    if (!e && in->balance)
        e = adoption_set_balance(pg, in->balance, clock_ns() + MIGRATE_NS, in->why);
    if (e || (e = migrate_up(pg, schema, clock_ns() + MIGRATE_NS, &report, in->why)))
        return e;
    printf("Schema     reclaim, version %d%s\n", report.after, report.before == report.after ? ", as it was" : "");
    return init_users_are_customers(in) ? database_note_customers(pg, true, in->why) : OK;
}

static enum err set_up_database(struct init *in)
{
    char question[256];
    (void)snprintf(question, sizeof question, "Set the database up now: %s%s%s the schema reclaim?",
                   in->uses_given ? "" : "the role ", in->uses_given ? "" : in->role,
                   in->uses_given ? "" : ", its grants,");
    if (in->files_only || (in->asks && !in->applies && !ask_yes(question, true))) {
        in->files_only = true;
        return OK;
    }
    enum err e = in->uses_given ? OK : init_create_role(in);
    if (e)
        return e;
    if (!in->uses_given)
        printf("Role       %s, %s, with its grants and %zu polic%s\n", in->role, in->role_exists ? "as it was" : "made",
               in->policy_count, in->policy_count == 1 ? "y" : "ies");
    return migrate(in);
}

/* The settings of the file, and nothing that the environment says instead. */
static enum err examine(struct init *in)
{
    int failures = 0;
    struct str settings = arena_printf(in->arena, "%s/" INIT_SETTINGS_FILE, in->directory);
    static const char *const written[] = {"RECLAIM_DATABASE_URL", "RECLAIM_DATABASE_DIRECT_URL", "RECLAIM_SECRET_KEY"};
    for (size_t i = 0; i < COUNT_OF(written); i++)
        (void)unsetenv(written[i]);
    printf("Doctor\n");
    enum err e = doctor_examine(settings.at, &failures, in->why);
    if (e || !failures)
        return e;
    return why_set(in->why, ERR_DATABASE, "%d of these have to be mended: then reclaim doctor --config %s", failures,
                   settings.at);
}

static void print_next(const struct init *in)
{
    int step = 1;
    printf("Next\n");
    if (in->files_only)
        printf("  %d. as an administrator of the database: psql -f %s/" INIT_ROLE_FILE "\n", step++, in->directory);
    printf("  %d. in reclaim.ini, who sends the codes: RECLAIM_MAIL_FROM and a provider\n", step++);
    if (!in->supabase)
        printf(
            "  %d. there too, whose tokens are accepted: RECLAIM_JWKS_URL, RECLAIM_JWT_ISSUER, RECLAIM_JWT_AUDIENCE\n",
            step++);
    if (in->table_count)
        printf("  %d. what else is erased with an account: sh %s/reclaim-participants.sh, after reading it\n", step++,
               in->directory);
    printf("  %d. reclaim serve --config %s/" INIT_SETTINGS_FILE "; reclaim-nginx.conf puts it behind nginx\n", step,
           in->directory);
}

static enum err run(struct init *in, const char *folder)
{
    bool had_url = getenv("RECLAIM_DATABASE_URL") != NULL;
    enum err e = init_check_folder(in, folder);
    if (e || (e = find_url(in)) || (e = init_connect(in)) || (e = init_look(in)))
        return e;
    print_found(in);
    if ((e = init_check_project(in)) || (e = init_propose_ownership(in)) || (e = ask_balance(in)) ||
        (e = init_find_key(in)) || (e = init_choose_role(in)) || (e = init_write_grants(in)) ||
        (e = init_write_files(in)))
        return e;
    printf("Files      %s: reclaim.ini, " INIT_ROLE_FILE
           ", reclaim-nginx.conf; secrets in files that only you can read\n",
           in->directory);
    fflush(stdout);
    if ((e = set_up_database(in)) || (!in->files_only && (e = examine(in))))
        return e;
    print_next(in);
    if (had_url)
        printf("RECLAIM_DATABASE_URL is set in the environment, which wins over the file: unset it\n");
    return OK;
}

enum err init_command(struct command_context *c)
{
    struct init *in = c->input;
    log_threshold(LOG_ERROR); /* what a server would log, doctor says here */
    enum err e = run(in, option(c, "--output") ? option(c, "--output") : ".");
    pg_free(in->pg);
    in->pg = NULL;
    return e;
}
