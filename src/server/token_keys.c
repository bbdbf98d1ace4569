#include "server/token_keys.h"

#include "server/test_hooks.h"

enum err token_keys_open(struct token_keys *t, const struct settings *s, const struct digest *own, struct why *why)
{
    struct jwt_keys *keys;
    t->own = own;
    atomic_store(&t->settings, s);
    enum err e = token_keys_prepare(t, s, &keys, why);
    if (e)
        return e;
    if (!(t->ring = key_ring_new())) {
        jwt_keys_free(keys);
        return why_set(why, ERR_MEMORY, "no memory for the keys that verify tokens");
    }
    key_ring_put(t->ring, keys);
    return OK;
}

/* For the reader, on its thread. */
static enum err make_keys(void *context, struct str set, struct jwt_keys **ret, struct why *why)
{
    const struct token_keys *t = context;
    return settings_token_keys(atomic_load(&t->settings), t->own, set, ret, why);
}

enum err token_keys_read(struct token_keys *t, struct pg *pg, const char *database_url, struct why *why)
{
    const struct key_reader_config reader = {.url = atomic_load(&t->settings)->jwks_url,
                                             .database_url = database_url,
                                             .every_ns = test_hooks_key_set_every_ns(KEY_SET_EVERY_NS),
                                             .again_ns = test_hooks_key_set_again_ns(KEY_SET_AGAIN_NS),
                                             .ring = t->ring,
                                             .make = make_keys,
                                             .context = t};
    return reader.url && !t->reader ? key_reader_start(&reader, pg, &t->reader, why) : OK;
}

enum err token_keys_prepare(const struct token_keys *t, const struct settings *fresh, struct jwt_keys **ret,
                            struct why *why)
{
    return settings_token_keys(fresh, t->own, (struct str){0}, ret, why);
}

/* The reader adds the keys that it knows, and so makes them all again. */
void token_keys_replace(struct token_keys *t, const struct settings *fresh, struct jwt_keys *prepared)
{
    atomic_store(&t->settings, fresh);
    if (t->reader) {
        jwt_keys_free(prepared);
        key_reader_remake(t->reader);
    } else {
        key_ring_put(t->ring, prepared);
    }
}

void token_keys_stop(struct token_keys *t)
{
    key_reader_stop(t->reader);
    t->reader = NULL;
}

void token_keys_free(struct token_keys *t)
{
    key_ring_free(t->ring);
}
