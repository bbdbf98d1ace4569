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

/* How long a statement waits for a lock that traffic waits behind; then it is rolled back and tried again. */
#define MIGRATE_LOCK_PATIENCE "'500ms'"
/* Whether to repeat what failed with `e`: it waited too long for a lock, or lost a deadlock. Pauses, so that others go first. */
bool migrate_tries_again(struct pg *pg, enum err e, const char *step, const char *what, int64_t deadline_ns);
/* Writes the step into the list of those applied. */
enum err migrate_enter_step(struct tx *tx, const struct migration *m, struct why *why) MUST_CHECK;

/* A step whose first line says that it is in parts. */
bool step_is_in_parts(const struct migration *m);
enum err parts_up(struct pg *pg, const struct migration *m, int64_t deadline_ns, struct why *why) MUST_CHECK;
/* Whether a step in parts that is not entered was begun. */
enum err parts_is_begun(struct pg *pg, const struct migration *m, bool *ret, struct why *why) MUST_CHECK;
void migrate_tell_waiting(const char *step, const char *what);

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
