#include "limits/admission.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "pg/arrays.h"
#include "pg/tx.h"

#define BATCH_MOST 512
#define WAITING_MOST 16384
#define KEY_SLOTS 4096
#define REFUSALS_KEPT 65536
#define TIMEOUT_NS (2 * NS_PER_S)

METRIC_COUNTER(verdicts, "reclaim_limit_decisions_total", "Requests checked against the rate limits.", "verdict",
               "source");
METRIC_COUNTER(refusing, "reclaim_limit_refusals_total", "Refusals, for each tier that was exhausted.", "tier");

const struct statement admission_decide = {
    .name = "admission_decide",
    .sql = "SELECT admitted, counts, leaves_us, waits_us"
           " FROM reclaim.admit($1::text[], $2::int4[], $3::int4[], $4::int4[])",
    .params = 4,
    .columns = "admitted:bool[] counts:int4[] leaves_us:int8[] waits_us:int8[]",
};

struct admission {
    pthread_mutex_t lock; /* guards the members below, and adding to and clearing the cache of refusals */
    struct tier_table tiers;
    uint64_t removals; /* so far; a result requested before a removal is not cached after it */
    struct refusals *refusals;
    struct listener *listener;
    _Atomic(struct batch *) batch; /* NULL until the database is ready */
};

/* The distinct keys of one statement. */
struct batch_keys {
    const struct standing *of[BATCH_MOST * TIERS_OF_REQUEST_MAX];
    size_t count;
    uint16_t slots[KEY_SLOTS]; /* open addressing: number of a key, 0 when empty */
};
_Static_assert(BATCH_MOST *TIERS_OF_REQUEST_MAX * 2 < KEY_SLOTS, "the table must stay half empty");

static bool same_key(const struct standing *a, const struct standing *b)
{
    return a->counted.tier == b->counted.tier &&
           memcmp(&a->counted.subject, &b->counted.subject, sizeof a->counted.subject) == 0;
}

/* The number of this standing's key in the statement, counting from 1. */
static size_t key_number(struct batch_keys *keys, const struct standing *s)
{
    size_t hash;
    memcpy(&hash, s->counted.subject.bytes, sizeof hash);
    for (size_t at = hash + (size_t)s->counted.tier;; at++) {
        uint16_t *slot = &keys->slots[at % COUNT_OF(keys->slots)];
        if (*slot && !same_key(keys->of[*slot - 1], s))
            continue;
        if (!*slot) {
            keys->of[keys->count] = s;
            *slot = (uint16_t)++keys->count;
        }
        return *slot;
    }
}

static struct ticket *ticket_of(struct batch_item *item)
{
    return OWNER_OF(item, struct ticket, item);
}

struct admit_arguments {
    struct buf keys, limits, windows, requests; /* array literals */
};

static void admit_arguments_free(struct admit_arguments *q)
{
    buf_free(&q->keys);
    buf_free(&q->limits);
    buf_free(&q->windows);
    buf_free(&q->requests);
}

static enum err admit_arguments_write(struct admit_arguments *q, struct batch_keys *keys, struct batch_item **items,
                                      size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct ticket *t = ticket_of(items[i]);
        for (size_t place = 0; place < TIERS_OF_REQUEST_MAX; place++)
            array_add_i64(&q->requests, place < t->count ? (int64_t)key_number(keys, &t->tiers[place]) : 0);
    }
    for (size_t k = 0; k < keys->count; k++) {
        char key[COUNTED_KEY_MAX];
        counted_key(&keys->of[k]->counted, key);
        array_add_plain(&q->keys, str_of(key));
        array_add_i64(&q->limits, keys->of[k]->limit.requests);
        array_add_i64(&q->windows, keys->of[k]->limit.seconds);
    }
    struct buf *all[] = {&q->keys, &q->limits, &q->windows, &q->requests};
    enum err e = OK;
    for (size_t i = 0; i < COUNT_OF(all); i++)
        e = array_end(all[i]) ? e : all[i]->failed;
    return e;
}

struct admit_result {
    struct str admitted, counts;
    int64_t leaves_ns[BATCH_MOST * TIERS_OF_REQUEST_MAX], waits_ns[BATCH_MOST * TIERS_OF_REQUEST_MAX];
};

static void admit_result_read(struct admit_result *a, const struct pg_call *call, size_t keys)
{
    a->admitted = pg_get(call, 0, 0);
    a->counts = pg_get(call, 0, 1);
    struct str leaves = pg_get(call, 0, 2), waits = pg_get(call, 0, 3);
    for (size_t k = 0; k < keys; k++) {
        a->leaves_ns[k] = array_next_i64(&leaves) * NS_PER_US;
        a->waits_ns[k] = array_next_i64(&waits) * NS_PER_US;
    }
}

/* Sets the verdict of one request; the result has the requests in the order of the arguments. */
static void ticket_set_verdict(struct ticket *t, struct batch_keys *keys, struct admit_result *a, size_t number)
{
    bool admitted = a->admitted.at[1 + 2 * number] == 't';
    for (size_t place = 0; place < TIERS_OF_REQUEST_MAX; place++) {
        int64_t counted = array_next_i64(&a->counts);
        if (place >= t->count)
            continue;
        struct standing *s = &t->tiers[place];
        size_t k = key_number(keys, s) - 1;
        s->remaining = counted < s->limit.requests ? s->limit.requests - counted : 0;
        s->reset_ns = a->leaves_ns[k];
        s->wait_ns = s->remaining ? 0 : a->waits_ns[k];
    }
    t->verdict = admitted ? ADMISSION_GRANTED : ADMISSION_REFUSED;
}

/* A key without remaining requests stays so until enough of them have left its window, unless it is reset. The database
 * read its clock at some time between asked_ns and now. */
static void cache_refusals(struct admission *a, const struct batch_keys *keys, const struct admit_result *answer,
                           int64_t asked_ns, uint64_t removals)
{
    int64_t uncertainty_ns = clock_ns() - asked_ns;
    pthread_mutex_lock(&a->lock);
    for (size_t k = 0; k < keys->count && a->removals == removals; k++)
        if (answer->waits_ns[k] > 0)
            refusals_add(a->refusals, &keys->of[k]->counted, &keys->of[k]->limit, asked_ns + answer->waits_ns[k],
                         uncertainty_ns);
    pthread_mutex_unlock(&a->lock);
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

/* Through a pooler, only a transaction's isolation level can be set, not the session's. */
static enum err ask_read_committed(struct pg *pg, struct pg_call *call, int64_t deadline_ns)
{
    if (!pg_is_pooled(pg))
        return pg_ask(pg, call, deadline_ns);
    AUTO(tx) struct tx *tx = tx_begin(pg, deadline_ns);
    return tx_commit(tx, call, 1);
}

static enum err decide(void *context, struct pg *pg, struct batch_item **items, size_t count)
{
    struct admission *a = context;
    uint64_t removals = take_current_limits(a, items, count);
    int64_t asked_ns = clock_ns();
    struct admit_arguments q = {buf_new(1 << 20), buf_new(1 << 16), buf_new(1 << 16), buf_new(1 << 16)};
    struct batch_keys *keys = calloc(1, sizeof *keys);
    struct admit_result *answer = calloc(1, sizeof *answer);
    enum err e = keys && answer ? admit_arguments_write(&q, keys, items, count) : ERR_MEMORY;
    if (!e) {
        struct pg_call call = {
            .ask = &admission_decide,
            .args = {pg_text(q.keys.at), pg_text(q.limits.at), pg_text(q.windows.at), pg_text(q.requests.at)}};
        e = ask_read_committed(pg, &call, clock_ns() + TIMEOUT_NS);
        if (!e) {
            admit_result_read(answer, &call, keys->count);
            for (size_t i = 0; i < count; i++)
                ticket_set_verdict(ticket_of(items[i]), keys, answer, i);
            cache_refusals(a, keys, answer, asked_ns, removals);
        }
    }
    free(answer);
    free(keys);
    admit_arguments_free(&q);
    return e;
}

static void report_verdict(struct ticket *t, const char *source)
{
    static const char *const names[] = {"none", "admitted", "refused", "fault"};
    counter_add(&verdicts, 1, names[t->verdict], source);
    for (size_t i = 0; i < t->count && t->verdict == ADMISSION_REFUSED; i++)
        if (t->tiers[i].wait_ns > 0)
            counter_add(&refusing, 1, tier_name(t->tiers[i].counted.tier));
    t->decided(t);
}

static void batch_done(void *context, struct batch_item *item, enum err e)
{
    (void)context;
    struct ticket *t = ticket_of(item);
    if (e) {
        t->verdict = ADMISSION_FAILED;
        t->fault = e;
    }
    report_verdict(t, "database");
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
        return tier == TIER_GLOBAL || digest_parse(rest, &ret->subject) == OK;
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
    if (!(a->refusals = refusals_new(REFUSALS_KEPT))) {
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
    refusals_free(a->refusals);
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

enum err admission_open(struct admission *a, const char *direct_url, struct pool *pool, struct why *why)
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
    if (!batch)
        return why_set(why, ERR_MEMORY, "no memory for the limits");
    atomic_store(&a->batch, batch);
    return OK;
}

void ticket_count_in(struct admission *a, struct ticket *t, struct counted counted)
{
    pthread_mutex_lock(&a->lock);
    struct limit limit = a->tiers.of[counted.tier];
    pthread_mutex_unlock(&a->lock);
    if (limit.requests && t->count < TIERS_OF_REQUEST_MAX)
        t->tiers[t->count++] = (struct standing){
            .counted = counted, .limit = limit, .remaining = limit.requests, .reset_ns = limit.seconds * NS_PER_S};
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

void admission_ask(struct admission *a, struct ticket *t)
{
    struct batch *batch = atomic_load(&a->batch);
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
        if (tighter)
            tightest = s;
    }
    return tightest;
}
