/* `reclaim key-set`: the public keys that verify certificates, and a new generation of them. */
#include <stdio.h>

#include "cli/commands.h"
#include "erasure/cascade.h"

const struct statement key_set_rotate = {
    .name = "key_set_rotate",
    .sql = "UPDATE reclaim.installation SET proof_generation = proof_generation + 1 WHERE proof_generation < 64"
           " RETURNING proof_generation AS generation",
    .params = 0,
    .columns = "generation:int4",
};

enum err command_proof_keys(struct command_context *c, struct proof_keys *ret)
{
    char master[SECRET_KEY_MAX + 1];
    enum err e = settings_secret_key(c->settings, false, master, &c->why);
    if (!e && (e = proof_keys_derive(str_of(master), ret)))
        why_set(&c->why, e, "the keys cannot be derived (%s)", err_name(e));
    secret_wipe(master, sizeof master);
    return e;
}

enum err key_set_command(struct command_context *c)
{
    bool rotates = option(c, "--rotate") != NULL;
    struct proof_keys *keys = arena_take(c->arena, sizeof *keys);
    struct pg_call call = {.ask = rotates ? &key_set_rotate : &certificate_generation};
    struct proof_key_set set;
    if (!keys)
        return why_set(&c->why, ERR_MEMORY, "no memory");
    enum err e = command_proof_keys(c, keys);
    if (e || (e = command_ask(c, &call)))
        return e;
    if (call.rows == 0)
        return why_set(&c->why, ERR_FULL, "there are %d generations of keys already, and no more than that",
                       PROOF_GENERATIONS);
    AUTO(buf) struct buf text = buf_new((size_t)64 * 1024);
    proof_keys_public(keys, (int)pg_get_i64(&call, 0, 0), &set);
    proof_keys_wipe(keys);
    proof_key_set_write(&set, &text);
    struct str all = buf_str(&text);
    if (!all.at)
        return why_set(&c->why, ERR_MEMORY, "no memory");
    printf("%.*s\n", STR_ARGS(all));
    if (rotates)
        fprintf(stderr,
                "Certificates are signed with generation %lld from now on. Publish the new set; it has the former\n"
                "keys too, so that older certificates can be verified.\n",
                (long long)pg_get_i64(&call, 0, 0));
    return OK;
}
