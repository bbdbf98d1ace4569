/* The keys that tokens are verified with: those of the settings, and of RECLAIM_JWKS_URL. */
#ifndef SERVER_TOKEN_KEYS_H
#define SERVER_TOKEN_KEYS_H

#include "credentials/key_reader.h"
#include "settings/settings.h"

struct token_keys {
    const struct digest *own;
    _Atomic(const struct settings *) settings;
    struct key_ring *ring;
    struct key_reader *reader; /* NULL without RECLAIM_JWKS_URL, and until token_keys_read() */
};

enum err token_keys_open(struct token_keys *t, const struct settings *s, const struct digest *own,
                         struct why *why) MUST_CHECK;
/* Without the keys of its URL the server would refuse good tokens: it is not ready before it has them. ERR_CLOSED: try
 * again. Does nothing without a URL. */
enum err token_keys_read(struct token_keys *t, struct pg *pg, const char *database_url, struct why *why) MUST_CHECK;
/* On a reload, before the new settings are in force: whether they can be used; the files are read again, even when their names
 * are the same. */
enum err token_keys_prepare(const struct token_keys *t, const struct settings *fresh, struct jwt_keys **ret,
                            struct why *why) MUST_CHECK;
/* Puts what was prepared into force, with the set of the URL. Both settings stay valid until token_keys_free(). */
void token_keys_replace(struct token_keys *t, const struct settings *fresh, struct jwt_keys *prepared);
void token_keys_stop(struct token_keys *t); /* no request asks any more; the ring stays */
void token_keys_free(struct token_keys *t);

#endif
