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
    if (s && seconds > s->limit.seconds)
        seconds = s->limit.seconds;
    return seconds < 1 ? 1 : seconds;
}

/* Without printf(), which would be most of the CPU time of a refusal under overload. */
static void add_number(struct buf *out, int64_t n)
{
    char digits[20];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + n % 10);
    while ((n /= 10) > 0);
    buf_add(out, (struct str){digits + at, sizeof digits - at});
}

static const char *number(struct request *rq, int64_t n)
{
    char buffer[24];
    struct buf out = buf_over(buffer, sizeof buffer);
    add_number(&out, n);
    return arena_copy(rq->arena, buf_str(&out)).at;
}

void limit_retry_header(struct request *rq, const struct ticket *t)
{
    reply_header(rq, "Retry-After", number(rq, limit_retry_after_s(t)));
}

struct str limit_wait_text(struct arena *arena, int64_t seconds)
{
    char buffer[40];
    struct buf out = buf_over(buffer, sizeof buffer);
    add_number(&out, seconds <= 60 ? seconds : (seconds + 59) / 60);
    buf_addz(&out, seconds > 60 ? " minutes" : seconds == 1 ? " second" : " seconds");
    return arena_copy(arena, buf_str(&out));
}

/* `"ip";q=5;w=60` */
static void add_tier(struct buf *out, enum tier tier, const char *first, int64_t a, const char *second, int64_t b)
{
    buf_add(out, STR("\""));
    buf_addz(out, tier_name(tier));
    buf_addz(out, first);
    add_number(out, a);
    buf_addz(out, second);
    add_number(out, b);
}

/* Unix time in seconds, rounded up. A reply that is held longer than that contains its own release time. */
static int64_t reset_time_s(const struct request *rq, int64_t reset_ns)
{
    int64_t now_ns = clock_ns();
    int64_t held_ns = hold_release_ns(&rq->hold, now_ns) - now_ns;
    int64_t from_now_ns = held_ns > reset_ns ? held_ns : reset_ns;
    return seconds_up(clock_wall_us() * NS_PER_US + from_now_ns);
}

void limit_headers(struct request *rq, const struct ticket *t)
{
    const struct standing *tightest = ticket_tightest(t);
    bool decided = t->verdict == ADMISSION_GRANTED || t->verdict == ADMISSION_REFUSED;
    if (!tightest || !decided)
        return;
    bool refused = t->verdict == ADMISSION_REFUSED;
    int64_t remaining = refused ? 0 : tightest->remaining;
    int64_t reset_ns = refused ? tightest->wait_ns : tightest->reset_ns;
    int64_t reset_s = refused ? limit_retry_after_s(t) : seconds_up(reset_ns);
    reply_header(rq, "X-RateLimit-Limit", number(rq, tightest->limit.requests));
    reply_header(rq, "X-RateLimit-Remaining", number(rq, remaining));
    reply_header(rq, "X-RateLimit-Reset", number(rq, reset_time_s(rq, reset_ns)));
    if (refused)
        reply_header(rq, "Retry-After", number(rq, reset_s));

    char buffer[256];
    struct buf out = buf_over(buffer, sizeof buffer);
    for (size_t i = 0; i < t->count; i++) {
        const struct standing *s = &t->tiers[i];
        if (s->soft)
            continue;
        buf_addz(&out, out.len ? ", " : "");
        add_tier(&out, s->counted.tier, "\";q=", s->limit.requests, ";w=", s->limit.seconds);
    }
    reply_header(rq, "RateLimit-Policy", arena_copy(rq->arena, buf_str(&out)).at);
    buf_clear(&out);
    add_tier(&out, tightest->counted.tier, "\";r=", remaining, ";t=", reset_s);
    reply_header(rq, "RateLimit", arena_copy(rq->arena, buf_str(&out)).at);
}
