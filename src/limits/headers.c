#include "limits/headers.h"

#include "base/buf.h"
#include "base/clock.h"

static int64_t seconds_up(int64_t ns)
{
    return (ns + NS_PER_S - 1) / NS_PER_S;
}

int64_t limit_retry_after_s(const struct ticket *t)
{
    const struct standing *s = ticket_tightest(t);
    int64_t seconds = s ? seconds_up(s->wait_ns) : 1;
    return seconds < 1 ? 1 : seconds;
}

struct str limit_wait_text(struct arena *arena, int64_t seconds)
{
    if (seconds < 60)
        return arena_printf(arena, "%lld second%s", (long long)seconds, seconds == 1 ? "" : "s");
    int64_t minutes = (seconds + 59) / 60;
    return arena_printf(arena, "%lld minute%s", (long long)minutes, minutes == 1 ? "" : "s");
}

static const char *number(struct request *rq, int64_t n)
{
    return arena_printf(rq->arena, "%lld", (long long)n).at;
}

void limit_headers(struct request *rq, const struct ticket *t)
{
    const struct standing *tightest = ticket_tightest(t);
    if (!tightest)
        return;
    bool refused = t->verdict == VERDICT_REFUSED;
    int64_t reset_s = refused ? limit_retry_after_s(t) : seconds_up(tightest->reset_ns);
    reply_header(rq, "X-RateLimit-Limit", number(rq, tightest->limit.requests));
    reply_header(rq, "X-RateLimit-Remaining", number(rq, refused ? 0 : tightest->remaining));
    reply_header(rq, "X-RateLimit-Reset", number(rq, clock_wall_us() / 1000000 + reset_s));
    if (refused)
        reply_header(rq, "Retry-After", number(rq, reset_s));

    AUTO(buf) struct buf policy = buf_new(512);
    for (size_t i = 0; i < t->count; i++)
        buf_addf(&policy, "%s\"%s\";q=%lld;w=%lld", i ? ", " : "", tier_name(t->tiers[i].charge.tier),
                 (long long)t->tiers[i].limit.requests, (long long)t->tiers[i].limit.seconds);
    reply_header(rq, "RateLimit-Policy", arena_copy(rq->arena, buf_str(&policy)).at);
    reply_header(rq, "RateLimit",
                 arena_printf(rq->arena, "\"%s\";r=%lld;t=%lld", tier_name(tightest->charge.tier),
                              (long long)(refused ? 0 : tightest->remaining), (long long)reset_s)
                     .at);
}
