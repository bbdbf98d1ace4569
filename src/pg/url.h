/* What a database URL says, and the same URL for another role. */
#ifndef PG_URL_H
#define PG_URL_H

#include "base/buf.h"
#include "pg/pg.h"

struct pg_target {
    char host[256]; /* the first of several; "" for the default; a path for a socket */
    char port[16];  /* "" for the default */
    char user[128]; /* "" for the default */
};

/* ERR_INPUT when it is no database URL. */
enum err pg_url_read(const char *url, struct pg_target *ret, struct why *why) MUST_CHECK;
/* Writes the URL with another user, password, database or port; NULL leaves what is there. Everything else stays. */
struct pg_url_change {
    const char *user, *password, *database, *port;
};
enum err pg_url_with(const char *url, const struct pg_url_change *change, struct buf *out, struct why *why) MUST_CHECK;

#define PG_VERIFIER_MAX 256
/* What PostgreSQL stores for a password (SCRAM-SHA-256): with it, the password itself never reaches the server. */
enum err pg_password_verifier(struct pg *pg, const char *user, const char *password,
                              char into[PG_VERIFIER_MAX]) MUST_CHECK;

#endif
