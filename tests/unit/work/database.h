/* A separate database for this test program, with Reclaim's schema, on the shared server. */
#ifndef TESTS_WORK_DATABASE_H
#define TESTS_WORK_DATABASE_H

#include "pg/pool.h"

/* Creates it on the server at RECLAIM_TEST_DATABASE_URL (tools/with-postgres). */
const char *database_make(const char *prefix);
void database_use(const char *made); /* created by another process */
void database_drop(void);
const char *database_url(void);

void database_run(const char *script); /* fails the test on an error */
int64_t database_number(const char *sql);
int64_t database_number_by(struct pg *pg, const char *sql); /* over this connection */
/* Waits until the SQL gives this number; the test fails after a minute. */
void database_await(const char *sql, int64_t wanted);
void database_check(const struct statement *const *statements, size_t count); /* against the schema */
struct pool *database_pool(int connections);

#endif
