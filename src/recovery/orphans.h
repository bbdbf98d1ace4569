/* Which users are orphaned: those of auth.users that are in no ownership table and neither own nor belong to a live customer.
 * One definition for probe, clean-up and report. */
#ifndef RECOVERY_ORPHANS_H
#define RECOVERY_ORPHANS_H

#include "pg/pg.h"
#include "recovery/ownership.h"

/* The statements that depend on the ownership columns, written once at start. */
struct orphan_statements {
    /* $1 addresses → sees_all:bool id:uuid verified:bool banned:bool has_company:bool. A row for each, in order: without a
     * user id is null, and where this role does not see all rows, or may not delete all users, sees_all is false. */
    struct statement candidates;
    /* $1 addresses → keys:int4 id:uuid blocked_by:text: how many foreign keys can stop a deletion, and for each user whom one
     * does stop a table with such rows; a row with nulls when there is none. */
    struct statement blocked;
    struct statement has_company; /* $1 address → has_company:bool, null when rows are hidden; no row without a user */
    struct statement have_company; /* $1 addresses → n:int8 has_company:bool, the same for many */
    /* Before a deletion reads: locks the ownership tables whose column has no foreign key to auth.users, since nothing
     * else keeps a registration from completing meanwhile. .sql is NULL when all have one. */
    struct statement lock_tables;
    /* $1 user → rows:int8. Before a deletion reads: locks the user's rows in ownership tables with a condition, since an update
     * that makes it true locks nothing else that a deletion does. .sql is NULL when there are none, or their tables are locked. */
    struct statement lock_rows;
    struct statement list; /* $1 age in seconds → id, email, created_at, verified, last_sign_in_at, blocked_by */
    /* $1 age in seconds, $2 the last id of the page before, $3 how many → as list, without banned users and blocked_by */
    struct statement page;
    /* $1 age in seconds, $2 the last id of the page before or null, $3 how many → id:uuid object:text; fails where rows are hidden */
    struct statement report;
    struct statement keys; /* → finding:text, one for each foreign key that can stop a deletion */
    char *text;            /* the memory of these */
    char *lock_text;
};

/* Before requests are served: writes lock_tables for the columns without a foreign key to auth.users, and lock_rows for the
 * others that have a condition. */
enum err orphan_statements_lock(struct orphan_statements *s, const struct ownership_column *columns,
                                const bool *without_key, size_t count) MUST_CHECK;

enum err orphan_statements_write(const struct ownership_column *columns, size_t count,
                                 struct orphan_statements *ret) MUST_CHECK;
void orphan_statements_free(struct orphan_statements *s);

#endif
