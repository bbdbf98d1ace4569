/* Customers made from what a team has: the users of auth.users, or rows of a file. Each batch is one transaction. */
#ifndef CUSTOMERS_IMPORT_H
#define CUSTOMERS_IMPORT_H

#include "base/buf.h"
#include "customers/freeze.h"

#define IMPORT_BATCH 500

/* Users whose address is confirmed and who neither own nor belong to a customer, in the order of their ids. */
struct import_pass {
    int64_t total;    /* how many there were when it began */
    int64_t imported; /* so far */
    bool over;
    char after[37]; /* used by import_users_step() */
};
enum err import_users_begin(struct pg *pg, int64_t deadline_ns, struct import_pass *ret) MUST_CHECK;
enum err import_users_step(struct pg *pg, const struct actor *actor, int64_t deadline_ns,
                           struct import_pass *pass) MUST_CHECK;

/* Rows of a file, as array literals that are being written: every column has an element for each. */
struct import_rows {
    struct buf names, emails, owners; /* an owner may be null */
    int count;
    bool ended; /* the literals are complete: nothing is added until import_rows_clear() */
};
struct import_rows import_rows_new(void);
void import_rows_cleanup(struct import_rows *rows);
void import_rows_clear(struct import_rows *rows);
void import_rows_add(struct import_rows *rows, struct str name, struct str email, struct str owner);

/* Numbers of the rows, from 0 on, whose owner is not in auth.users; `ret` holds IMPORT_BATCH. */
enum err import_rows_check(struct pg *pg, struct import_rows *rows, int64_t deadline_ns, int *ret,
                           int *ret_count) MUST_CHECK;
/* Makes the customers. A row that equals a customer which is not deleted, in owner, name and address, is left out: a file can
 * be imported again after a failure. */
enum err import_rows_write(struct pg *pg, struct import_rows *rows, const struct actor *actor, int64_t deadline_ns,
                           int64_t *ret_made) MUST_CHECK;

extern const struct statement *const import_statements[];
extern const size_t import_statement_count;

#endif
