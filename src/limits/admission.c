#include "limits/admission.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "limits/admit_batch.h"

#define BATCH_MOST ADMIT_BATCH_MOST
#define WAITING_MOST 16384
#define REFUSALS_KEPT 65536
#define TIMEOUT_NS (2 * NS_PER_S)
/* A transaction of another program that called check_rate_limit() may hold a key for as long as it likes. */
#define LOCK_WAIT_MS 200
#define RETRY_NS (10 * NS_PER_MS)
#define LOCKED_KEPT 4096
#define LOCKED_NS (2 * NS_PER_S) /* after that a key is tried in the common batch again */

METRIC_COUNTER(verdicts, "reclaim_limit_decisions_total", "Requests checked against the rate limits.", "verdict",
               "source");
static _Atomic unsigned long long refusal_count;
METRIC_COUNTER(refusing, "reclaim_limit_refusals_total", "Refusals, for each tier that was exhausted.", "tier");

struct admission {
    pthread_mutex_t lock; /* guards the members below, and adding to and clearing the cache of refusals */
    struct tier_table tiers;
    uint64_t removals; /* so far; a result requested before a removal is not cached after it */
    struct refusals *refusals;
    /* Keys that another transaction held a moment ago. */
    /* cache: locked limits */
    struct refusals *locked_keys;
    atomic_int_fast64_t locked_until_ns; /* when its last entry ends: it is mostly empty */
    struct listener *listener;
    struct batch *patient;         /* for requests with such keys; there when `batch` is */
    _Atomic(struct batch *) batch; /* NULL until the database is ready */
};

/* A key without remaining requests stays so until enough of them have left its window, unless it is reset. The database
 * read its clock at some time between asked_ns and now. */
static void cache_refusals(struct admission *a, const struct key_states *keys, int64_t asked_ns, uint64_t removals)
{
    int64_t uncertainty_ns = clock_ns() - asked_ns;
    pthread_mutex_lock(&a->lock);
    for (size_t k = 0; k < keys->count && a->removals == removals; k++)
        if (keys->of[k].wait_ns > 0)
            refusals_add(a->refusals, &keys->of[k].counted, &keys->of[k].limit, asked_ns + keys->of[k].wait_ns,
                         uncertainty_ns);
    pthread_mutex_unlock(&a->lock);
}

static void cache_locked(struct admission *a, const struct key_states *keys)
{
    int64_t until_ns = clock_ns() + LOCKED_NS;
    pthread_mutex_lock(&a->lock);
    for (size_t k = 0; k < keys->count; k++)
        if (keys->of[k].locked)
            refusals_add(a->locked_keys, &keys->of[k].counted, &keys->of[k].limit, until_ns, 0);
    pthread_mutex_unlock(&a->lock);
    atomic_store(&a->locked_until_ns, until_ns);
}

static void remove_refusals(struct admission *a, const struct counted *c)
{
    pthread_mutex_lock(&a->lock);
    a->removals++;
    refusals_remove(a->refusals, c);
    pthread_mutex_unlock(&a->lock);
}

/* Limits may have changed since the tickets were filled in. A batch must have one limit per tier: the current one.
 * Returns the number of removals so far. */
static uint64_t take_current_limits(struct admission *a, struct batch_item **items, size_t count)
{
    pthread_mutex_lock(&a->lock);
    struct tier_table now = a->tiers;
    uint64_t removals = a->removals;
    pthread_mutex_unlock(&a->lock);
    for (size_t i = 0; i < count; i++) {
        struct ticket *t = ticket_of(items[i]);
        size_t kept = 0;
        for (size_t place = 0; place < t->count; place++) {
            struct standing *s = &t->tiers[place];
            s->limit = now.of[s->counted.tier];
            if (s->limit.requests)
                t->tiers[kept++] = *s;
        }
        t->count = kept;
    }
    return removals;
}

/* When another transaction holds a key, all requests without it are decided. Those with it stay undecided. */
static enum err decide(void *context, struct pg *pg, struct batch_item **items, size_t count)
{
    struct admission *a = context;
    uint64_t removals = take_current_limits(a, items, count);
    int64_t asked_ns = clock_ns();
    struct key_states *keys = calloc(1, sizeof *keys);
    bool locked = false;
    enum err e = keys ? admit_batch(pg, items, count, LOCK_WAIT_MS, asked_ns + TIMEOUT_NS, keys, &locked) : ERR_MEMORY;
    if (locked) {
        asked_ns = clock_ns();
        e = admit_batch(pg, items, count, 0, asked_ns + TIMEOUT_NS, keys, &locked);
    }
    if (!e)
        cache_refusals(a, keys, asked_ns, removals);
    free(keys);
    return e;
}

static size_t undecided(struct batch_item **items, size_t count, struct batch_item **into)
{
    size_t left = 0;
    for (size_t i = 0; i < count; i++)
        if (ticket_of(items[i])->verdict == ADMISSION_UNDECIDED)
            into[left++] = items[i];
    return left;
}

/* For requests with a key that is locked: holds no lock while it waits, so that no other request waits with them. */
static enum err decide_patiently(void *context, struct pg *pg, struct batch_item **items, size_t count)
{
    struct admission *a = context;
    struct batch_item *open[BATCH_MOST];
    uint64_t removals = take_current_limits(a, items, count);
    int64_t until_ns = clock_ns() + LOCK_WAIT_MS * NS_PER_MS;
    struct key_states *keys = calloc(1, sizeof *keys);
    enum err e = keys ? OK : ERR_MEMORY;
    for (bool again = false; !e && (count = undecided(items, count, open)) > 0; again = true) {
        if (again && clock_ns() > until_ns) {
            cache_locked(a, keys);
            break;
        }
        if (again)
            nanosleep(&(struct timespec){.tv_nsec = RETRY_NS}, NULL);
        bool locked;
        int64_t asked_ns = clock_ns();
        if (!(e = admit_batch(pg, open, count, 0, asked_ns + TIMEOUT_NS, keys, &locked)))
            cache_refusals(a, keys, asked_ns, removals);
        items = open;
    }
    free(keys);
    return e;
}

static void report_verdict(struct ticket *t, const char *source)
{
    static const char *const names[] = {"none", "admitted", "refused", "fault"};
    counter_add(&verdicts, 1, names[t->verdict], source);
    for (size_t i = 0; i < t->count && t->verdict == ADMISSION_REFUSED; i++)
        if (t->tiers[i].wait_ns > 0 && !t->tiers[i].soft)
            counter_add(&refusing, 1, tier_name(t->tiers[i].counted.tier));
    if (t->verdict == ADMISSION_REFUSED)
        atomic_fetch_add(&refusal_count, 1);
    t->decided(t);
}

unsigned long long admission_refused(void)
{
    return atomic_load(&refusal_count);
}

static void patient_done(void *context, struct batch_item *item, enum err e)
{
    (void)context;
    struct ticket *t = ticket_of(item);
    if (e || t->verdict == ADMISSION_UNDECIDED) {
        t->verdict = ADMISSION_FAILED;
        t->fault = e ? e : ERR_TIMEOUT;
    }
    report_verdict(t, "database");
}

/* The key may be held by another instance for a moment, or by another program for as long as it likes. */
static void batch_done(void *context, struct batch_item *item, enum err e)
{
    struct admission *a = context;
    bool undecided = !e && ticket_of(item)->verdict == ADMISSION_UNDECIDED;
    if (!undecided || batch_add(a->patient, item))
        patient_done(context, item, e);
}

/* Parses a key of reclaim.rate_limits; false for unknown keys. */
static bool counted_parse(struct str key, struct counted *ret)
{
    struct str rest = key, name;
    if (!str_split(&rest, ':', &name))
        return false;
    for (int tier = 0; tier < TIER_COUNT; tier++) {
        if (!str_eq(name, str_of(tier_name((enum tier)tier))))
            continue;
        *ret = (struct counted){.tier = (enum tier)tier};
        return tier_counts_everyone((enum tier)tier) || digest_parse(rest, &ret->subject) == OK;
    }
    return false;
}

static void on_reset(void *context, const char *channel, const char *payload)
{
    (void)channel;
    struct admission *a = context;
    struct counted counted;
    remove_refusals(a, counted_parse(str_of(payload), &counted) ? &counted : NULL);
}

static void on_connection(void *context, bool is_alive)
{
    struct admission *a = context;
    if (is_alive)
        remove_refusals(a, NULL); /* a reset may have been missed */
}

struct admission *admission_new(void)
{
    struct admission *a = calloc(1, sizeof *a);
    if (!a)
        return NULL;
    pthread_mutex_init(&a->lock, NULL);
    a->refusals = refusals_new(REFUSALS_KEPT);
    a->locked_keys = refusals_new(LOCKED_KEPT);
    if (!a->refusals || !a->locked_keys) {
        admission_free(a);
        return NULL;
    }
    return a;
}

void admission_free(struct admission *a)
{
    if (!a)
        return;
    if (a->listener)
        listener_stop(a->listener);
    batch_free(atomic_load(&a->batch));
    batch_free(a->patient);
    refusals_free(a->refusals);
    refusals_free(a->locked_keys);
    pthread_mutex_destroy(&a->lock);
    free(a);
}

void admission_configure(struct admission *a, const struct tier_table *tiers)
{
    pthread_mutex_lock(&a->lock);
    a->tiers = *tiers;
    pthread_mutex_unlock(&a->lock);
    remove_refusals(a, NULL);
}

struct tier_table admission_tiers(struct admission *a)
{
    pthread_mutex_lock(&a->lock);
    struct tier_table tiers = a->tiers;
    pthread_mutex_unlock(&a->lock);
    return tiers;
}

enum err admission_open(struct admission *a, const char *direct_url, struct pool *pool, struct pool *patient_pool,
                        struct why *why)
{
    static const char *const channels[] = {LIMITS_CHANNEL, NULL};
    struct listener_config listen = {direct_url, channels, a, on_reset, on_connection};
    struct batch_config config = {.pool = pool,
                                  .most = BATCH_MOST,
                                  .capacity = WAITING_MOST,
                                  .in_flight = 1,
                                  .limit_ns = TIMEOUT_NS,
                                  .context = a,
                                  .run = decide,
                                  .done = batch_done};
    if (!(a->listener = listener_start(&listen, why)))
        return ERR_SYSTEM;
    struct batch *batch = batch_new(&config);
    config.pool = patient_pool;
    config.run = decide_patiently;
    config.done = patient_done;
    a->patient = batch_new(&config);
    if (!batch || !a->patient)
        return why_set(why, ERR_MEMORY, "no memory for the limits");
    atomic_store(&a->batch, batch);
    return OK;
}

static void add_tier(struct admission *a, struct ticket *t, struct counted counted, bool soft)
{
    pthread_mutex_lock(&a->lock);
    struct limit limit = a->tiers.of[counted.tier];
    pthread_mutex_unlock(&a->lock);
    if (limit.requests && t->count < TIERS_OF_REQUEST_MAX)
        t->tiers[t->count++] = (struct standing){.counted = counted,
                                                 .limit = limit,
                                                 .soft = soft,
                                                 .remaining = limit.requests,
                                                 .reset_ns = limit.seconds * NS_PER_S};
}

void ticket_count_in(struct admission *a, struct ticket *t, struct counted counted)
{
    add_tier(a, t, counted, false);
}

void ticket_count_softly(struct admission *a, struct ticket *t, struct counted counted)
{
    add_tier(a, t, counted, true);
}

void ticket_count_client(struct admission *a, struct ticket *t, enum tier tier, const struct digest *key,
                         const struct ip *client)
{
    add_tier(a, t, counted_by_ip(tier, key, client), false);
    if (!ip_is_v4(client))
        add_tier(a, t, counted_by_site(tier_of_sites(tier), key, client), false);
}

bool admission_is_listening(const struct admission *a)
{
    return atomic_load(&a->batch) && listener_is_alive(a->listener);
}

static bool refused_from_memory(struct admission *a, struct ticket *t)
{
    if (!admission_is_listening(a))
        return false;
    int64_t now_ns = clock_ns();
    bool refused = false;
    for (size_t i = 0; i < t->count; i++) {
        struct standing *s = &t->tiers[i];
        if (s->soft)
            continue;
        int64_t wait_ns = refusals_wait(a->refusals, &s->counted, &s->limit, now_ns);
        if (!wait_ns)
            continue;
        s->remaining = 0;
        s->wait_ns = s->reset_ns = wait_ns;
        refused = true;
    }
    return refused;
}

bool admission_refuse(struct admission *a, struct ticket *t)
{
    if (!refused_from_memory(a, t))
        return false;
    t->verdict = ADMISSION_REFUSED;
    report_verdict(t, "memory");
    return true;
}

/* Whether one of its keys was locked a moment ago. */
static bool has_locked_key(struct admission *a, const struct ticket *t)
{
    int64_t now_ns = clock_ns();
    for (size_t i = 0; i < t->count && now_ns < atomic_load(&a->locked_until_ns); i++)
        if (refusals_until(a->locked_keys, &t->tiers[i].counted, &t->tiers[i].limit, now_ns))
            return true;
    return false;
}

void admission_ask(struct admission *a, struct ticket *t)
{
    struct batch *batch = atomic_load(&a->batch);
    if (batch && has_locked_key(a, t))
        batch = a->patient;
    if (t->count == 0) {
        t->verdict = ADMISSION_GRANTED;
        report_verdict(t, "unlimited");
    } else if (admission_refuse(a, t)) {
        return;
    } else if (!batch || batch_add(batch, &t->item)) {
        t->verdict = ADMISSION_FAILED;
        t->fault = batch ? ERR_FULL : ERR_CLOSED;
        report_verdict(t, "database");
    }
}

const struct standing *ticket_tightest(const struct ticket *t)
{
    const struct standing *tightest = NULL;
    for (size_t i = 0; i < t->count; i++) {
        const struct standing *s = &t->tiers[i];
        bool tighter = !tightest || (t->verdict == ADMISSION_REFUSED ? s->wait_ns > tightest->wait_ns
                                                                     : s->remaining < tightest->remaining);
        if (!s->soft && tighter)
            tightest = s;
    }
    return tightest;
}

void ticket_show_soft(struct ticket *t)
{
    for (size_t i = 0; i < t->count; i++)
        t->tiers[i].soft = false;
}

bool ticket_soft_is_full(const struct ticket *t)
{
    for (size_t i = 0; i < t->count; i++)
        if (t->tiers[i].soft && t->tiers[i].was_full)
            return true;
    return false;
}

void ticket_refuse_softly(struct ticket *t)
{
    t->verdict = ADMISSION_REFUSED;
    atomic_fetch_add(&refusal_count, 1);
    for (size_t i = 0; i < t->count; i++) {
        struct standing *s = &t->tiers[i];
        if (!s->soft || !s->was_full)
            s->wait_ns = 0; /* it has admitted this request */
        s->soft = false;
    }
}
