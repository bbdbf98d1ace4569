#include "limits/admit_batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "pg/arrays.h"
#include "pg/lock_ids.h"
#include "pg/tx.h"

#define KEYS_MOST (ADMIT_BATCH_MOST * TIERS_OF_REQUEST_MAX)
#define KEY_SLOTS 8192

const struct statement admission_decide = {
    .name = "admission_decide",
    .sql = "SELECT admitted, counts, leaves_us, waits_us FROM reclaim.admit_batch($1::text[], $2::int4[], $3::int4[],"
           " $4::int4[], $5::int4, " LOCK_CLASS_LIMIT ", $6::int4)",
    .params = 6,
    .columns = "admitted:bool[] counts:int4[] leaves_us:int8[] waits_us:int8[]",
};

/* The distinct keys of one statement. */
struct batch_keys {
    const struct standing *of[KEYS_MOST];
    size_t count;
    uint16_t slots[KEY_SLOTS]; /* open addressing: number of a key, 0 when empty */
};
_Static_assert(KEYS_MOST * 2 < KEY_SLOTS, "the table must stay half empty");

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

struct admit_arguments {
    struct buf keys, limits, windows, requests; /* array literals */
    size_t places;                              /* of each request */
};

static void admit_arguments_free(struct admit_arguments *q)
{
    buf_free(&q->keys);
    buf_free(&q->limits);
    buf_free(&q->windows);
    buf_free(&q->requests);
}

static size_t places_needed(struct batch_item **items, size_t count)
{
    size_t most = 1;
    for (size_t i = 0; i < count; i++)
        most = ticket_of(items[i])->count > most ? ticket_of(items[i])->count : most;
    return most;
}

static void add_request(struct admit_arguments *q, struct batch_keys *keys, const struct ticket *t)
{
    for (size_t place = 0; place < q->places; place++) {
        int64_t number = place < t->count ? (int64_t)key_number(keys, &t->tiers[place]) : 0;
        array_add_i64(&q->requests, place < t->count && t->tiers[place].soft ? -number : number);
    }
}

static enum err admit_arguments_write(struct admit_arguments *q, struct batch_keys *keys, struct batch_item **items,
                                      size_t count)
{
    q->places = places_needed(items, count);
    for (size_t i = 0; i < count; i++)
        add_request(q, keys, ticket_of(items[i]));
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
    struct str admitted, counts; /* array literals, from which one request after the other is read */
    int64_t leaves_ns[KEYS_MOST];
};

static void admit_result_read(struct admit_result *a, const struct pg_call *call, const struct batch_keys *keys,
                              struct key_states *ret)
{
    a->admitted = pg_get(call, 0, 0);
    a->counts = pg_get(call, 0, 1);
    struct str leaves = pg_get(call, 0, 2), waits = pg_get(call, 0, 3);
    ret->count = keys->count;
    for (size_t k = 0; k < keys->count; k++) {
        a->leaves_ns[k] = array_next_i64(&leaves) * NS_PER_US;
        ret->of[k] = (struct key_state){.counted = keys->of[k]->counted,
                                        .limit = keys->of[k]->limit,
                                        .wait_ns = array_next_i64(&waits) * NS_PER_US,
                                        .locked = a->leaves_ns[k] < 0};
    }
}

/* The next element of a bool[] literal: "t", "f" or "NULL". */
static char next_flag(struct str *rest)
{
    size_t len = 1;
    while (len < rest->len && rest->at[len] != ',' && rest->at[len] != '}')
        len++;
    char flag = rest->len > 1 ? rest->at[1] : 'N';
    *rest = len < rest->len ? (struct str){rest->at + len, rest->len - len} : (struct str){rest->at, 0};
    return flag;
}

/* Sets the verdict of the next request; the result has them in the order of the arguments. */
static void ticket_set_verdict(struct ticket *t, struct batch_keys *keys, struct admit_result *a,
                               const struct key_states *states, size_t places)
{
    char admitted = next_flag(&a->admitted);
    for (size_t place = 0; place < places; place++) {
        int64_t counted = array_next_i64(&a->counts);
        if (place >= t->count)
            continue;
        struct standing *s = &t->tiers[place];
        size_t k = key_number(keys, s) - 1;
        s->was_full = counted < 0;
        s->remaining = s->was_full || counted >= s->limit.requests ? 0 : s->limit.requests - counted;
        s->reset_ns = a->leaves_ns[k];
        s->wait_ns = s->remaining ? 0 : states->of[k].wait_ns;
    }
    t->verdict = admitted == 't' ? ADMISSION_GRANTED : admitted == 'f' ? ADMISSION_REFUSED : ADMISSION_UNDECIDED;
}

/* Through a pooler, only a transaction's isolation level can be set, not the session's. */
static enum err ask_read_committed(struct pg *pg, struct pg_call *call, int64_t deadline_ns)
{
    if (!pg_is_pooled(pg))
        return pg_ask(pg, call, deadline_ns);
    AUTO(tx) struct tx *tx = tx_begin(pg, deadline_ns);
    return tx_commit(tx, call, 1);
}

static enum err ask(struct pg *pg, const struct admit_arguments *q, int wait_ms, int64_t deadline_ns,
                    struct pg_call *ret, bool *ret_locked)
{
    *ret = (struct pg_call){.ask = &admission_decide,
                            .args = {pg_text(q->keys.at), pg_text(q->limits.at), pg_text(q->windows.at),
                                     pg_text(q->requests.at), pg_i64((int64_t)q->places), pg_i64(wait_ms)}};
    enum err e = ask_read_committed(pg, ret, deadline_ns);
    *ret_locked = e && strcmp(ret->sqlstate, "55P03") == 0;
    return e;
}

enum err admit_batch(struct pg *pg, struct batch_item **items, size_t count, int wait_ms, int64_t deadline_ns,
                     struct key_states *ret, bool *ret_locked)
{
    struct admit_arguments q = {buf_new(1 << 20), buf_new(1 << 16), buf_new(1 << 16), buf_new(1 << 16), 0};
    struct batch_keys *keys = calloc(1, sizeof *keys);
    struct admit_result *answer = calloc(1, sizeof *answer);
    *ret_locked = false;
    enum err e = keys && answer ? admit_arguments_write(&q, keys, items, count) : ERR_MEMORY;
    if (!e) {
        struct pg_call call;
        if (!(e = ask(pg, &q, wait_ms, deadline_ns, &call, ret_locked))) {
            admit_result_read(answer, &call, keys, ret);
            for (size_t i = 0; i < count; i++)
                ticket_set_verdict(ticket_of(items[i]), keys, answer, ret, q.places);
        }
    }
    free(answer);
    free(keys);
    admit_arguments_free(&q);
    return e;
}
