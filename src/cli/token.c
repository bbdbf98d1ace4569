#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/digest.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "settings/settings.h"

#define TTL_MIN_MS 1000
#define TTL_MAX_MS INT64_C(315360000000) /* ten years */

static int not_understood(const char *word, const char *wanted)
{
    fprintf(stderr, "reclaim token: \"%s\" is not %s\n", word, wanted);
    return 2;
}

static enum err sign(const struct settings *s, const struct jwt_grant *grant, struct buf *out, struct why *why)
{
    char master[SECRET_KEY_MAX + 1];
    struct digest own;
    enum err e = settings_secret_key(s, false, master, why);
    if (e)
        return e;
    e = digest_derive(str_of(master), JWT_OWN_PURPOSE, &own);
    secret_wipe(master, sizeof master);
    if (!e)
        e = jwt_sign(&own, grant, out);
    secret_wipe(&own, sizeof own);
    return e ? why_set(why, e, "the token cannot be signed (%s)", err_name(e)) : OK;
}

int command_token(int argc, char **argv)
{
    struct option_rule options[] = {
        {"--config", true, NULL}, {"--role", true, NULL}, {"--sub", true, NULL}, {"--ttl", true, NULL}};
    if (options_read(argc, argv, options, COUNT_OF(options), 0, NULL))
        return 2;
    const char *role = options[1].value, *sub = options[2].value, *ttl = options[3].value ? options[3].value : "1h";
    bool admin = role && strcmp(role, "admin") == 0;
    int64_t ttl_ms;
    if (!role || (!admin && strcmp(role, "authenticated") != 0)) {
        fprintf(stderr, "reclaim token: say --role admin or --role authenticated\n");
        return 2;
    }
    if (sub && !str_is_uuid(str_of(sub)))
        return not_understood(sub, "a user's id, a UUID");
    if (str_to_duration_ms(str_of(ttl), &ttl_ms) || ttl_ms < TTL_MIN_MS || ttl_ms > TTL_MAX_MS)
        return not_understood(ttl, "a duration from 1s to 3650d, such as 15m");

    struct why why = {""};
    AUTO(settings) struct settings *s = NULL;
    char buffer[1024];
    struct buf token = buf_over(buffer, sizeof buffer);
    int64_t now_us = clock_wall_us();
    const struct jwt_grant grant = {admin ? "service_role" : "authenticated", sub, now_us, now_us + ttl_ms * 1000};
    if (settings_load(options[0].value, &s, &why) || sign(s, &grant, &token, &why))
        return command_failed("token", &why);
    printf("%s\n", buffer);
    secret_wipe(buffer, sizeof buffer);
    return 0;
}
