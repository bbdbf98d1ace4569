/* Servers for tests: a shared one, private ones that tests can stop and suspend, and poolers in front of them. */
#ifndef TESTS_PG_SERVER_H
#define TESTS_PG_SERVER_H

#include <sys/types.h>

#include "pg/pg.h"

/* RECLAIM_TEST_DATABASE_URL, or a private server that ends with this process. Tests must not stop it. */
const char *shared_url(void);

/* A private cluster on a unix socket; `setting` ("name=value") may be NULL. Stopped and removed with this process. */
struct server *server_start(const char *setting);
void server_free(struct server *s);
const char *server_url(const struct server *s);
const char *server_dir(const struct server *s);    /* where its socket is */
void server_down(struct server *s);                /* immediate: clients get no message */
void server_shut(struct server *s);                /* fast: clients get a message */
void server_up(struct server *s);                  /* does nothing when it is running */
void server_hang(struct server *s, pid_t backend); /* SIGSTOP for the postmaster, and for the backend unless 0 */
void server_resume(struct server *s, pid_t backend);

/* PgBouncer in transaction mode with two connections to the server of this URL. */
struct pooler *pooler_start(const char *url);
void pooler_free(struct pooler *p);
const char *pooler_url(const struct pooler *p);

/* Connects; the test fails when that fails. */
struct pg *must_connect(const char *url, enum pg_prepare prepare);
void must_run(struct pg *pg, const char *script);
/* The first field of the first row that this SQL returns, on a separate connection, as a number. */
int64_t number_from(const char *url, const char *sql);

#endif
