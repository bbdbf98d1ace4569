/* What the parts of the migrator share; private to src/pg. */
#ifndef PG_MIGRATE_INSIDE_H
#define PG_MIGRATE_INSIDE_H

#include "pg/migrate.h"
#include "pg/tx.h"

/* A transaction with only pg_catalog on the search path. The caller has it roll back unless committed. */
enum err migrate_begin(struct pg *pg, struct tx **tx, int64_t deadline_ns, struct why *why) MUST_CHECK;
enum err migrate_ask(struct tx *tx, struct pg_call *call, struct why *why) MUST_CHECK;
enum err migrate_commit(struct tx *tx, struct why *why) MUST_CHECK;
enum err migrate_refused(enum err e, const struct pg_call *call, struct why *why);

extern const struct statement migrate_read_set;

/* What migrate_read_set answered, against the set of this program. ERR_INPUT when it is another set of the same number. */
enum err set_compare(const struct pg_call *stored, const struct function_set *set, int *ret_stored,
                     struct why *why) MUST_CHECK;
/* Puts the whole set in place, in one transaction. */
enum err set_apply(struct pg *pg, const struct function_set *set, int64_t deadline_ns, struct why *why) MUST_CHECK;
/* Drops what the set made, and forgets its number, as a part of the transaction. */
enum err set_remove(struct pg *pg, struct tx *tx, const struct function_set *set, int64_t deadline_ns,
                    struct why *why) MUST_CHECK;

#endif
