/* The columns of RECLAIM_OWNERSHIP, whose rows make a user not orphaned.
 *
 *   companies.owner_admin_uuid, profiles.id where onboarded_at is not null
 *
 * A condition is an SQL expression over the table's own columns, for tables in which every user has a row. It has no
 * sub-select: the rows that it depends on are locked before a deletion reads, and those of other tables would not be. */
#ifndef RECOVERY_OWNERSHIP_H
#define RECOVERY_OWNERSHIP_H

#include "base/arena.h"
#include "base/buf.h"

struct ownership_column {
    const char *schema, *table, *column; /* plain identifiers */
    const char *condition;               /* NULL: every row counts */
};

#define OWNERSHIP_MAX 8

/* Removes the part before a comma from *rest, as str_split() does; one within parentheses or quotes ends no part. */
bool ownership_split(struct str *rest, struct str *ret_part);
/* One part. ERR_INPUT unless it is TABLE.COLUMN or SCHEMA.TABLE.COLUMN, and WHERE with a condition that is complete in itself:
 * parentheses and quotes are balanced, and there is no semicolon, comment, parameter, backslash or sub-select. */
enum err ownership_parse(struct str part, struct arena *arena, struct ownership_column *ret) MUST_CHECK;
/* The words of the condition that may name columns, as an array of PostgreSQL's: "{onboarded_at,is,not,null}". */
void ownership_words(const struct ownership_column *column, struct buf *out);
/* "schema.table.column" of each, once, as an array of PostgreSQL's. */
void ownership_names(const struct ownership_column *columns, size_t count, struct buf *out);

#endif
