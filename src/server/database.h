/* Opening the database and checking that it is what this program needs, for the server and for commands. */
#ifndef SERVER_DATABASE_H
#define SERVER_DATABASE_H

#include "base/digest.h"
#include "cluster/cluster.h"
#include "recovery/orphans.h"
#include "settings/keys.h"
#include "settings/settings.h"

/* auth.users in the catalogue, within SQL; null when there is none. A role that may not use the schema gets no error. */
#define USERS_OID                                                                                                      \
    "(SELECT users.oid FROM pg_catalog.pg_class users JOIN pg_catalog.pg_namespace auth ON auth.oid = "                \
    "users.relnamespace WHERE auth.nspname = 'auth' AND users.relname = 'users')"

struct database {
    struct cluster *cluster; /* NULL when another process, or an operator, runs the server */
    struct pg *pg;           /* direct, not through a pooler */
};

/* For commands: connects to the configured database, or to the embedded cluster, which is started and stopped with the
 * command when no server is running on it. Never creates a cluster: ERR_MISSING when there is none. */
enum err database_open(const struct settings *s, struct database *ret, struct why *why) MUST_CHECK;
void database_close(struct database *db);
void database_cleanup(struct database *db);

/* For commands: a key derived from the master key for one purpose. Never creates a master key. */
enum err database_derive(const struct settings *s, const char *purpose, struct digest *ret, struct why *why) MUST_CHECK;

/* ERR_CONFLICT when the database was set up with another master key: its hashes would not be found. */
enum err database_same_key(const struct settings *s, struct pg *pg, struct why *why) MUST_CHECK;

/* Stores the fingerprint of this master key in a new database; ERR_CONFLICT when another one is stored. */
enum err database_claim(struct pg *pg, const struct digest *fingerprint, struct why *why) MUST_CHECK;

/* Whether the private database was last served as a demonstration: the server records it, and commands then
 * promise the mails that the server would. */
enum err database_note_demo(struct pg *pg, bool demo, struct why *why) MUST_CHECK;
enum err database_is_demo(struct pg *pg, bool *ret, struct why *why) MUST_CHECK;

/* Records in the database what its triggers need of the settings; the latest start or reload counts. */
enum err database_note_settings(struct pg *pg, int64_t grace_ms, bool mails, int64_t freeze_limit, int64_t cooldown_ms,
                                int64_t deadline_ns) MUST_CHECK;
/* What the latest start has recorded of RECLAIM_CUSTOMERS. */
enum err database_users_are_customers(struct pg *pg, bool *ret, struct why *why) MUST_CHECK;
/* Records where customers come from (RECLAIM_CUSTOMERS); where users are customers, has auth.users watched for removals, and warns when
 * this role may not. */
enum err database_note_customers(struct pg *pg, bool users, struct why *why) MUST_CHECK;
/* So that a deletion knows the tables of RECLAIM_OWNERSHIP. */
enum err database_note_ownership(struct pg *pg, const struct ownership_column *columns, size_t count,
                                 struct why *why) MUST_CHECK;
/* Makes partitions of the audit tables for this month and the next two; the leader calls it. */
enum err database_make_partitions(struct pg *pg, int64_t deadline_ns) MUST_CHECK;

/* Has PostgreSQL describe every statement of the program and compares the result. For statements that depend on
 * RECLAIM_OWNERSHIP a difference is only logged: check-email-status answers null without them. */
enum err database_check_statements(struct pg *pg, const struct orphan_statements *orphans, struct why *why) MUST_CHECK;

/* Makes deletions lock the tables whose ownership column has no foreign key to auth.users, and logs a warning for each table
 * of which row security hides rows. */
enum err database_guard_ownership(struct pg *pg, const struct ownership_column *columns, size_t count,
                                  struct orphan_statements *orphans, struct why *why) MUST_CHECK;

enum severity {
    SEVERITY_OK,
    SEVERITY_WARNING, /* Reclaim works, but slowly or in part */
    SEVERITY_FAILURE, /* Reclaim does not work as it should until this is mended */
};

struct finding {
    enum severity severity;
    const char *sentence; /* what is wrong and what to do about it; valid during the call */
};

typedef void finding_handler(void *context, const struct finding *finding);

/* Checks what the ownership columns need: the table and the column (failures), an index that starts with it and a
 * foreign key to auth.users (warnings). Calls `each` for what is missing. */
enum err database_check_ownership(struct pg *pg, const struct ownership_column *columns, size_t count,
                                  finding_handler *each, void *context, struct why *why) MUST_CHECK;

/* Calls `each` with a warning for each foreign key that can keep an orphan from being deleted. */
enum err database_check_keys(struct pg *pg, const struct orphan_statements *orphans, finding_handler *each,
                             void *context, struct why *why) MUST_CHECK;

/* Calls `each` with a failure for each table of which row security hides rows from this role, or keeps it from changing
 * them: users, ownership tables and Reclaim's own. ERR_MISSING without the schema. */
enum err database_check_row_security(struct pg *pg, const struct ownership_column *columns, size_t count,
                                     finding_handler *each, void *context, struct why *why) MUST_CHECK;

/* Logs what that finds: requests that meet hidden rows are refused one by one, so the operator hears of it at start. */
void database_warn_of_hidden_rows(struct pg *pg, const struct ownership_column *columns, size_t count);

#define DATABASE_DEADLINE_NS (30 * NS_PER_S)

#endif
