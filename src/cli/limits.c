#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/email.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "limits/store.h"
#include "server/database.h"

#define TIERS_OF_KEY_MAX 3

/* "ip:ADDRESS" and so on: every tier that counts under it. */
static enum err counted_named(struct str key, const struct digest *identifier_key, struct counted *into,
                              size_t *ret_count, struct why *why)
{
    struct str subject = key, kind;
    AUTO(arena) struct arena *arena = arena_new(1024, 65536);
    struct ip ip;
    struct str email;
    if (str_eq(key, STR("global"))) {
        into[0] = counted_globally();
        *ret_count = 1;
        return OK;
    }
    if (!arena || !str_split(&subject, ':', &kind))
        return why_set(why, ERR_INPUT, "no key was given");
    *ret_count = 3;
    if (str_eq(kind, STR("ip")) && ip_parse(subject, &ip) == OK) {
        into[0] = counted_by_ip(TIER_IP, identifier_key, &ip);
        into[1] = counted_by_ip(TIER_PROBE, identifier_key, &ip);
        into[2] = counted_by_ip(TIER_LOGIN_IP, identifier_key, &ip);
        return OK;
    }
    if (str_eq(kind, STR("email")) && email_normalise(arena, subject, &email) == OK) {
        into[0] = counted_by_email(TIER_EMAIL, identifier_key, email);
        into[1] = counted_by_email(TIER_EMAIL_VALIDATE, identifier_key, email);
        into[2] = counted_by_email(TIER_LOGIN, identifier_key, email);
        return OK;
    }
    return why_set(why, ERR_INPUT, "\"%.*s\" is not ip:ADDRESS, email:ADDRESS or global", STR_ARGS(key));
}

static enum err show(struct pg *pg, const struct counted *c, const struct limit *limit)
{
    if (limit->requests == 0) {
        printf("%-15s off\n", tier_name(c->tier));
        return OK;
    }
    struct limit_state state;
    enum err e = limits_look(pg, c, limit, clock_ns() + DATABASE_DEADLINE_NS, &state);
    if (e)
        return e;
    int64_t left = state.count < limit->requests ? limit->requests - state.count : 0;
    printf("%-15s %lld of %lld in %lld s, %lld left", tier_name(c->tier), (long long)state.count,
           (long long)limit->requests, (long long)limit->seconds, (long long)left);
    if (state.wait_us)
        printf(", one more in %lld s", (long long)((state.wait_us + 999999) / 1000000));
    putchar('\n');
    return OK;
}

int command_limits(int argc, char **argv)
{
    struct option_rule options[] = {{"--config", true, NULL}};
    int words;
    if (options_read(argc, argv, options, COUNT_OF(options), 2, &words))
        return 2;
    bool reset = words == 2 && strcmp(argv[1], "reset") == 0;
    if (words != 2 || (!reset && strcmp(argv[1], "show") != 0)) {
        fprintf(stderr, "reclaim limits: say show KEY or reset KEY; KEY is ip:ADDRESS, email:ADDRESS or global\n");
        return 2;
    }

    struct why why = {""};
    AUTO(settings) struct settings *s = NULL;
    AUTO(database) struct database db = {0};
    struct digest identifier_key;
    struct counted charges[TIERS_OF_KEY_MAX] = {{0}};
    size_t count = 0;
    if (settings_load(options[0].value, &s, &why) || database_identifier_key(s, &identifier_key, &why))
        return command_failed("limits", &why);
    if (counted_named(str_of(argv[2]), &identifier_key, charges, &count, &why)) {
        (void)command_failed("limits", &why);
        return 2;
    }
    if (database_open(s, &db, &why) || database_same_key(s, db.pg, &why))
        return command_failed("limits", &why);
    struct tier_table tiers = settings_tiers(s);
    for (size_t i = 0; i < count; i++) {
        enum err e = reset ? limits_reset(db.pg, &charges[i], clock_ns() + DATABASE_DEADLINE_NS)
                           : show(db.pg, &charges[i], &tiers.of[charges[i].tier]);
        if (e) {
            why_set(&why, e, "the counts cannot be reached (%s); is the schema up to date? (reclaim migrate)",
                    err_name(e));
            return command_failed("limits", &why);
        }
    }
    if (reset)
        printf("reset\n");
    return 0;
}
