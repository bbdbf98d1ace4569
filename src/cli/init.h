/* Private to src/cli: `reclaim init`, from a connection string to a running configuration.
 *
 *   init.c          the arguments and the order of things; what is printed
 *   init_connect.c  the connection, its pooler, and the Supabase project behind it
 *   init_look.c     what is in the database; proposes RECLAIM_OWNERSHIP and participants
 *   init_role.c     the role, its grants and policies
 *   init_files.c    the files that are written */
#ifndef CLI_INIT_H
#define CLI_INIT_H

#include "cli/command.h"
#include "pg/url.h"
#include "settings/settings.h"

#define INIT_TABLES_MAX 64
#define INIT_COUNT_MOST 1000000 /* rows of a table that are counted */

/* A column with a foreign key to auth.users. */
struct init_table {
    const char *schema, *table, *column;
    const char *quoted; /* SCHEMA.TABLE (COLUMN), as SQL has them */
    char on_delete;     /* as in pg_constraint.confdeltype */
    bool has_index, may_read;
    bool is_plain;         /* its names can stand in RECLAIM_OWNERSHIP */
    int64_t rows, users;   /* -1: could not be counted */
    bool is_everyones;     /* every user has a row there */
    const char *condition; /* what may tell finished registrations there; NULL: nothing was found */
};

struct init {
    struct arena *arena;
    struct why *why;
    /* What was asked for. */
    bool asks, applies, files_only, force, same_role, names_role;
    const char *url, *direct_url; /* the second is NULL unless the first goes through a pooler */
    const char *supabase;         /* https://REF.supabase.co; NULL: not known */
    const char *role, *ownership, *balance;
    const char *directory; /* absolute */
    /* What was found. */
    struct pg *pg; /* direct */
    struct pg_target target;
    const char *project; /* the REF of a hosted project; NULL for others */
    const char *database, *user, *version;
    const char *schema_owner; /* of schema reclaim; NULL when there is none */
    bool is_supabase, may_read_users, owns_users, may_delete_users, creates_roles, role_exists, adopts, key_recorded;
    char fingerprint[DIGEST_HEX_LEN + 1]; /* of the master key that the database knows; "" when there is none */
    int64_t user_count;
    struct init_table tables[INIT_TABLES_MAX];
    size_t table_count;
    /* What was decided. */
    bool uses_given;                        /* the server connects with the given role */
    const char *role_url, *role_direct_url; /* for the server; with the password */
    const char *key, *password;             /* the master key; the role's password, NULL: it keeps its own */
    const char *grants;                     /* a script of the role and its grants */
    const char *policies[INIT_TABLES_MAX];  /* a script each */
    size_t policy_count;
};

/* Unless a team brings customers of its own. */
static inline bool init_users_are_customers(const struct init *in)
{
    return in->is_supabase && !in->adopts;
}

/* Connects, directly if need be through another URL. What is wrong is said with what to do about it. */
enum err init_connect(struct init *in) MUST_CHECK;
/* RECLAIM_JWKS_URL of the project, checked: ERR_INPUT when it is no key set. */
enum err init_check_project(struct init *in) MUST_CHECK;

enum err init_look(struct init *in) MUST_CHECK;
/* Sets in->ownership, unless it was given; asks if it may. NULL when no table can serve. */
enum err init_propose_ownership(struct init *in) MUST_CHECK;
void init_print_tables(const struct init *in);

/* The URL of the server's role, with a new password if need be. */
enum err init_choose_role(struct init *in) MUST_CHECK;
enum err init_write_grants(struct init *in) MUST_CHECK;
enum err init_create_role(struct init *in) MUST_CHECK;

/* The folder: absolute, writable, without reclaim.ini or with --force. Changes nothing. */
enum err init_check_folder(struct init *in, const char *given) MUST_CHECK;
/* The key in the folder or the environment, or a new one; ERR_CONFLICT when the database knows another. */
enum err init_find_key(struct init *in) MUST_CHECK;
/* A new key or password, in letters that a URL takes as they are; NULL: no memory. */
const char *init_new_secret(struct arena *arena);
/* The text of a file in the folder without its line end; NULL when there is none. */
const char *init_read_file(struct init *in, const char *name);
enum err init_write_files(struct init *in) MUST_CHECK;

#define INIT_URL_FILE "reclaim-database-url"
#define INIT_DIRECT_FILE "reclaim-direct-url"
#define INIT_KEY_FILE "reclaim-secret-key"
#define INIT_ROLE_FILE "reclaim-role.sql"
#define INIT_SETTINGS_FILE "reclaim.ini"

#endif
