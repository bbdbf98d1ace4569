/* Reads the key set of an identity provider from RECLAIM_JWKS_URL, on a thread of its own: every ten minutes, and when a token
 * names a key that is not known, at most every 30 seconds. While it cannot be read, the set read last counts; the database keeps it for the next
 * start. */
#ifndef CREDENTIALS_KEY_READER_H
#define CREDENTIALS_KEY_READER_H

#include "base/clock.h"
#include "credentials/key_ring.h"
#include "pg/pg.h"

struct key_reader;

#define KEY_SET_EVERY_NS (600 * NS_PER_S)
#define KEY_SET_AGAIN_NS (30 * NS_PER_S)

struct key_reader_config {
    const char *url, *database_url;
    int64_t every_ns, again_ns; /* between two reads; after a failure, and between two for unknown keys */
    struct key_ring *ring;      /* gets the keys of each new set */
    /* Makes all keys for tokens, with those of the set read; called on the reader's thread, and by key_reader_start(). */
    enum err (*make)(void *context, struct str set, struct jwt_keys **ret, struct why *why);
    void *context;
};

/* Reads the set, or takes the one in the database when it cannot be read. ERR_CLOSED if there is none either: try again. */
enum err key_reader_start(const struct key_reader_config *config, struct pg *pg, struct key_reader **ret,
                          struct why *why) MUST_CHECK;
void key_reader_stop(struct key_reader *reader); /* NULL is fine */

/* Makes the keys again with the set that is known, after other sources of keys have changed. */
void key_reader_remake(struct key_reader *reader);

struct key_wait { /* embed it */
    /* Called once, on the reader's thread. `reached`: the set was read since, whether or not it has changed. */
    void (*read)(struct key_wait *wait, bool reached);
    struct key_wait *next; /* private */
};

enum key_news {
    KEYS_AWAITED,      /* `read` is called within seconds */
    KEYS_AS_PUBLISHED, /* read moments ago: a key that is not in it does not exist */
    KEYS_OUT_OF_REACH, /* could not be read moments ago */
};

/* Has the set read again for a token with an unknown key, but not more often than every `again_ns`. */
enum key_news key_reader_await(struct key_reader *reader, struct key_wait *wait) MUST_CHECK;

/* Reads the set once, in the caller's thread, for `reclaim doctor`. */
enum err key_set_fetch(const char *url, struct buf *ret, struct why *why) MUST_CHECK;

extern const struct statement *const key_reader_statements[];
extern const size_t key_reader_statement_count;

#endif
