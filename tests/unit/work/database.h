/* A database of this test program's own, with Reclaim's schema, beside the others on the shared server. */
#ifndef TESTS_WORK_DATABASE_H
#define TESTS_WORK_DATABASE_H

#include "pg/pool.h"

/* Fresh; on the server that RECLAIM_TEST_DATABASE_URL leads to (tools/with-postgres). Dropped by database_drop. */
const char *database_make(const char *prefix);
void database_use(const char *made); /* one that another process has made */
void database_drop(void);
const char *database_url(void);

void database_run(const char *script); /* or the test fails */
int64_t database_number(const char *sql);
int64_t database_number_by(struct pg *pg, const char *sql); /* over this connection */
/* Waits until the SQL gives this number; the test fails after a minute. */
void database_await(const char *sql, int64_t wanted);
void database_check(const struct statement *const *statements, size_t count); /* against the schema */
struct pool *database_pool(int connections);

#endif
