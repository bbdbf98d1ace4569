/* `reclaim limits`: how much of each rate limit a client, an address or everyone has used, and forgetting it. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/email.h"
#include "cli/commands.h"
#include "limits/store.h"
#include "server/database.h"

#define TIERS_OF_KEY_MAX 8

struct limits_key { /* what "ip:ADDRESS" and so on names */
    enum { KEY_GLOBAL, KEY_IP, KEY_EMAIL } kind;
    struct ip ip;
    struct str email;
    bool has_client; /* an address of the client was given with the e-mail address */
};

static enum err key_parse(struct arena *arena, struct str text, struct limits_key *ret)
{
    struct str subject = text, kind;
    if (str_eq(text, STR("global"))) {
        ret->kind = KEY_GLOBAL;
        return OK;
    }
    if (!str_split(&subject, ':', &kind))
        return ERR_INPUT;
    ret->kind = str_eq(kind, STR("ip")) ? KEY_IP : KEY_EMAIL;
    if (ret->kind == KEY_IP)
        return ip_parse(subject, &ret->ip);
    return str_eq(kind, STR("email")) ? email_normalise(arena, subject, &ret->email) : ERR_INPUT;
}

enum err limits_read(struct command_context *c)
{
    bool shows = strcmp(word(c, 0), "show") == 0, resets = strcmp(word(c, 0), "reset") == 0;
    struct limits_key *key = arena_take(c->arena, sizeof *key), client = {.kind = KEY_GLOBAL};
    if (c->word_count < 2 || c->word_count > 3 || (!shows && !resets))
        return why_set(&c->why, ERR_INPUT,
                       "say show KEY or reset KEY; KEY is ip:ADDRESS, email:ADDRESS or global, or both addresses");
    if (!key || key_parse(c->arena, str_of(word(c, 1)), key))
        return why_set(&c->why, ERR_INPUT, "\"%s\" is not ip:ADDRESS, email:ADDRESS or global", word(c, 1));
    if (c->word_count == 3) {
        if (key->kind != KEY_EMAIL || key_parse(c->arena, str_of(word(c, 2)), &client) || client.kind != KEY_IP)
            return why_set(&c->why, ERR_INPUT, "two keys are email:ADDRESS and then ip:ADDRESS");
        key->ip = client.ip;
        key->has_client = true;
    }
    if (c->format_given && !shows)
        return why_set(&c->why, ERR_INPUT, "--format goes with show");
    c->input = key;
    return OK;
}

/* The tiers of clients, each followed by that of sites for an IPv6 address. */
static size_t counted_under_ip(const struct ip *ip, const struct digest *identifier_key,
                               struct counted into[TIERS_OF_KEY_MAX])
{
    static const enum tier tiers[] = {TIER_IP, TIER_PROBE, TIER_LOGIN_IP, TIER_CODE_IP};
    size_t count = 0;
    for (size_t i = 0; i < COUNT_OF(tiers); i++) {
        into[count++] = counted_by_ip(tiers[i], identifier_key, ip);
        if (!ip_is_v4(ip))
            into[count++] = counted_by_site(tier_of_sites(tiers[i]), identifier_key, ip);
    }
    return count;
}

static size_t counted_under_email(const struct limits_key *key, const struct digest *identifier_key,
                                  struct counted into[TIERS_OF_KEY_MAX])
{
    static const enum tier tiers[] = {TIER_EMAIL, TIER_EMAIL_VALIDATE, TIER_LOGIN_ADDRESS, TIER_CODE};
    size_t count = 0;
    for (size_t i = 0; i < COUNT_OF(tiers); i++)
        into[count++] = counted_by_email(tiers[i], identifier_key, key->email);
    if (key->has_client)
        into[count++] = counted_by_email_and_ip(TIER_LOGIN, identifier_key, key->email, &key->ip);
    return count;
}

/* Every tier that counts under the key. */
static size_t counted_under(const struct limits_key *key, const struct digest *identifier_key,
                            struct counted into[TIERS_OF_KEY_MAX])
{
    switch (key->kind) {
    case KEY_IP:
        return counted_under_ip(&key->ip, identifier_key, into);
    case KEY_EMAIL:
        return counted_under_email(key, identifier_key, into);
    default:
        into[0] = counted_for_everyone(TIER_GLOBAL);
        into[1] = counted_for_everyone(TIER_GLOBAL_VALIDATE);
        return 2;
    }
}

static const struct report_column columns[] = {
    {.name = "tier", .width = 15},
    {.name = "requests", .kind = REPORT_NUMBER, .where = IN_DATA},
    {.name = "limit", .kind = REPORT_NUMBER, .where = IN_DATA},
    {.name = "window_seconds", .kind = REPORT_NUMBER, .where = IN_DATA},
    {.name = "left", .kind = REPORT_NUMBER, .where = IN_DATA},
    {.name = "wait_seconds", .kind = REPORT_NUMBER, .where = IN_DATA},
    {.name = "what", .where = IN_TABLE},
};
static const struct report_shape limits_shape = {columns, COUNT_OF(columns), false, "", NULL};

/* A tier that is off has its name and nothing else. */
static void add_off(struct report *r)
{
    for (int column = 1; column <= 5; column++)
        report_null(r);
    report_text(r, STR("off"));
}

static enum err add_tier(struct command_context *c, struct report *r, const struct counted *counted,
                         const struct limit *limit)
{
    struct limit_state state;
    report_text(r, str_of(tier_name(counted->tier)));
    if (limit->requests == 0) {
        add_off(r);
        return OK;
    }
    enum err e = limit_read_state(c->pg, counted, limit, clock_ns() + DATABASE_DEADLINE_NS, &state);
    if (e)
        return e;
    int64_t left = state.count < limit->requests ? limit->requests - state.count : 0;
    int64_t wait_s = (state.wait_us + 999999) / 1000000;
    const int64_t numbers[] = {state.count, limit->requests, limit->seconds, left, wait_s};
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        report_number(r, numbers[i]);
    AUTO(buf) struct buf what = buf_new(256);
    buf_addf(&what, "%lld of %lld in %lld s, %lld left", (long long)state.count, (long long)limit->requests,
             (long long)limit->seconds, (long long)left);
    if (state.wait_us)
        buf_addf(&what, ", one more in %lld s", (long long)wait_s);
    report_text(r, buf_str(&what));
    return OK;
}

enum err limits_command(struct command_context *c)
{
    struct counted counted[TIERS_OF_KEY_MAX] = {{0}};
    size_t count = counted_under(c->input, &c->key, counted);
    struct tier_table tiers = settings_tiers(c->settings);
    bool resets = strcmp(word(c, 0), "reset") == 0;
    AUTO(report) struct report *r = report_new(&limits_shape, c->format);
    enum err e = OK;
    for (size_t i = 0; !e && i < count; i++)
        e = resets ? limits_reset(c->pg, &counted[i], clock_ns() + DATABASE_DEADLINE_NS)
                   : add_tier(c, r, &counted[i], &tiers.of[counted[i].tier]);
    if (e)
        return why_set(&c->why, e, "the counts cannot be reached (%s); is the schema up to date? (reclaim migrate)",
                       err_name(e));
    if (!resets)
        return report_print(r, &c->why);
    printf("reset\n");
    return OK;
}
