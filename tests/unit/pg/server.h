/* Servers for tests: the shared one, private ones to be stopped and hung at will, and poolers before them. */
#ifndef TESTS_PG_SERVER_H
#define TESTS_PG_SERVER_H

#include <sys/types.h>

#include "pg/pg.h"

/* RECLAIM_TEST_DATABASE_URL, or a private server that ends with this process. Not to be stopped. */
const char *shared_url(void);

/* A private cluster on a unix socket; `setting` ("name=value") may be NULL. It and its files go with this process. */
struct server *server_start(const char *setting);
void server_free(struct server *s);
const char *server_url(const struct server *s);
const char *server_dir(const struct server *s);    /* where its socket is */
void server_down(struct server *s);                /* at once, without a word to its clients */
void server_shut(struct server *s);                /* fast: clients are told */
void server_up(struct server *s);                  /* nothing when it is */
void server_hang(struct server *s, pid_t backend); /* SIGSTOP for the postmaster, and for the backend unless 0 */
void server_resume(struct server *s, pid_t backend);

/* PgBouncer in transaction mode with two connections to the server that the URL leads to. */
struct pooler *pooler_start(const char *url);
void pooler_free(struct pooler *p);
const char *pooler_url(const struct pooler *p);

/* A connection or the test fails. */
struct pg *must_connect(const char *url, enum pg_prepare prepare);
void must_run(struct pg *pg, const char *script);
/* The first field of the first row that this SQL gives, over a connection of its own, as a number. */
int64_t number_from(const char *url, const char *sql);

#endif
