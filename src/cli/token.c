/* `reclaim token`: a token for the API, signed with Reclaim's own key. It belongs to no session, needs no database, and
 * ends with its life. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "cli/commands.h"
#include "credentials/jwt.h"

#define TTL_MIN_MS 1000
#define TTL_MAX_MS INT64_C(315360000000) /* ten years */

struct token_input {
    bool admin;
    int64_t ttl_ms;
};

enum err token_read(struct command_context *c)
{
    const char *role = option(c, "--role"), *sub = option(c, "--sub"), *ttl = option(c, "--ttl");
    struct token_input *in = arena_take(c->arena, sizeof *in);
    if (!in)
        return why_set(&c->why, ERR_MEMORY, "no memory");
    in->admin = role && strcmp(role, "admin") == 0;
    if (!role || (!in->admin && strcmp(role, "authenticated") != 0))
        return why_set(&c->why, ERR_INPUT, "say --role admin or --role authenticated");
    if (sub && !str_is_uuid(str_of(sub)))
        return why_set(&c->why, ERR_INPUT, "\"%s\" is not a user's id, a UUID", sub);
    ttl = ttl ? ttl : "1h";
    if (str_to_duration_ms(str_of(ttl), &in->ttl_ms) || in->ttl_ms < TTL_MIN_MS || in->ttl_ms > TTL_MAX_MS)
        return why_set(&c->why, ERR_INPUT, "\"%s\" is not a duration from 1s to 3650d, such as 15m", ttl);
    c->input = in;
    return OK;
}

enum err token_command(struct command_context *c)
{
    const struct token_input *in = c->input;
    char buffer[1024];
    struct buf token = buf_over(buffer, sizeof buffer);
    int64_t now_us = clock_wall_us();
    const struct jwt_grant grant = {.role = in->admin ? "service_role" : "authenticated",
                                    .sub = option(c, "--sub"),
                                    .issued_us = now_us,
                                    .expires_us = now_us + in->ttl_ms * 1000};
    enum err e = jwt_sign(&c->key, &grant, &token);
    if (e)
        return why_set(&c->why, e, "the token cannot be signed (%s)", err_name(e));
    printf("%s\n", buffer);
    secret_wipe(buffer, sizeof buffer);
    return OK;
}
