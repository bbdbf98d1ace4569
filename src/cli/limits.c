/* `reclaim limits`: how much of each rate limit a client, an address or everyone has used, and forgetting it. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "limits/keys.h"
#include "limits/store.h"
#include "server/database.h"

enum err limits_read(struct command_context *c)
{
    bool shows = strcmp(word(c, 0), "show") == 0, resets = strcmp(word(c, 0), "reset") == 0;
    struct limits_key *key = arena_take(c->arena, sizeof *key), client = {.kind = LIMITS_GLOBAL};
    if (c->word_count < 2 || c->word_count > 3 || (!shows && !resets))
        return why_set(&c->why, ERR_INPUT,
                       "say show KEY or reset KEY; KEY is ip:ADDRESS, email:ADDRESS or global, or both addresses");
    if (!key || limits_key_parse(c->arena, str_of(word(c, 1)), key))
        return why_set(&c->why, ERR_INPUT, "\"%s\" is not ip:ADDRESS, email:ADDRESS or global", word(c, 1));
    if (c->word_count == 3) {
        if (key->kind != LIMITS_EMAIL || limits_key_parse(c->arena, str_of(word(c, 2)), &client) ||
            client.kind != LIMITS_IP)
            return why_set(&c->why, ERR_INPUT, "two keys are email:ADDRESS and then ip:ADDRESS");
        key->ip = client.ip;
        key->has_client = true;
    }
    if (c->format_given && !shows)
        return why_set(&c->why, ERR_INPUT, "--format goes with show");
    c->input = key;
    return OK;
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
    struct counted counted[LIMITS_KEY_TIERS] = {{0}};
    size_t count = limits_key_counted(c->input, &c->key, counted);
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
