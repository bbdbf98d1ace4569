#include "recovery/refusal_counts.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "recovery/audit.h"

#define WINDOW_NS (60 * NS_PER_S)
#define WRITE_NS (5 * NS_PER_S)
#define JSON_MAX ((size_t)(REFUSAL_KEYS_MAX + 10) * 512)

static void set_timer(struct work_note *note);
static void window_over(struct work_timer *timer);
static enum err write_counts(struct job *job, struct pg *pg);
static void counts_written(struct job *job, enum err e);

void refusal_counts_open(struct refusal_counts *c, struct pool *pool, struct engine *engine)
{
    pthread_mutex_init(&c->lock, NULL);
    c->pool = pool;
    c->engine = engine;
    c->note.run = set_timer;
    c->timer.due = window_over;
    atomic_store(&c->open, true);
}

static bool is_same(const struct refusal_count *r, const struct counted *by, int error)
{
    return r->error == error && r->by.tier == by->tier && digest_eq(&r->by.subject, &by->subject);
}

/* The entry of the key, or a free one; that of all others of the error when too many keys are counted. */
static struct refusal_count *find(struct refusal_counts *c, const struct counted *by, int error)
{
    uint64_t start;
    memcpy(&start, by->subject.bytes, sizeof start);
    for (size_t i = 0; i < REFUSAL_SLOTS; i++) {
        struct refusal_count *r = &c->slots[(start + i) % REFUSAL_SLOTS];
        if (r->count && is_same(r, by, error))
            return r;
        if (!r->count)
            return c->used < REFUSAL_KEYS_MAX ? r : &c->others[error];
    }
    return &c->others[error];
}

bool refusal_counts_add(struct refusal_counts *c, struct counted by, int error, const char *correlation_id)
{
    if (!atomic_load(&c->open))
        return false;
    pthread_mutex_lock(&c->lock);
    struct refusal_count *r = find(c, &by, error);
    bool is_other = r == &c->others[error], first = r->count == 0;
    if (first) {
        *r = (struct refusal_count){.error = error, .from_us = clock_wall_us()};
        if (!is_other)
            r->by = by;
        snprintf(r->correlation_id, sizeof r->correlation_id, "%s", correlation_id);
        c->used += !is_other;
    }
    r->count++;
    bool arm = !c->armed;
    c->armed = true;
    pthread_mutex_unlock(&c->lock);
    if (arm)
        work_post(c->engine, &c->note);
    return first && !is_other;
}

/* On the engine's thread, after the first refusal of a window. */
static void set_timer(struct work_note *note)
{
    struct refusal_counts *c = OWNER_OF(note, struct refusal_counts, note);
    work_at(c->engine, &c->timer, clock_ns() + WINDOW_NS);
}

static void window_over(struct work_timer *timer)
{
    refusal_counts_flush(OWNER_OF(timer, struct refusal_counts, timer));
}

static void add_json(struct json_writer *w, const struct refusal_count *r, bool is_other)
{
    static const struct digest nobody;
    char hash[DIGEST_HEX_LEN + 1], outcome[32];
    bool by_email = r->by.tier == TIER_EMAIL || r->by.tier == TIER_EMAIL_VALIDATE;
    digest_hex(&r->by.subject, hash);
    snprintf(outcome, sizeof outcome, "ORPHAN_CLEANUP_%03d", r->error);
    json_open(w, '{');
    json_key(w, "correlation_id");
    json_str(w, str_of(r->correlation_id));
    if (!is_other && !digest_eq(&r->by.subject, &nobody)) {
        json_key(w, by_email ? "email_hash" : "network_hash");
        json_str(w, str_of(hash));
    }
    json_key(w, "outcome");
    json_str(w, str_of(outcome));
    json_key(w, "detail");
    json_str(w, is_other                           ? STR("others")
                : r->error == CLEANUP_RATE_LIMITED ? str_of(tier_name(r->by.tier))
                                                   : STR("malformed"));
    json_key(w, "count");
    json_i64(w, r->count);
    json_key(w, "from_us");
    json_i64(w, r->from_us);
    json_close(w, '}');
}

/* Writes the counts as JSON and sets them to zero; returns how many requests they are. */
static int64_t take(struct refusal_counts *c)
{
    int64_t requests = 0;
    c->json = buf_new(JSON_MAX);
    struct json_writer w = json_to(&c->json);
    json_open(&w, '[');
    for (size_t i = 0; i < REFUSAL_SLOTS + COUNT_OF(c->others); i++) {
        bool is_other = i >= REFUSAL_SLOTS;
        struct refusal_count *r = is_other ? &c->others[i - REFUSAL_SLOTS] : &c->slots[i];
        if (!r->count)
            continue;
        requests += r->count;
        add_json(&w, r, is_other);
        r->count = 0;
    }
    json_close(&w, ']');
    c->used = 0;
    c->armed = false;
    return requests;
}

void refusal_counts_flush(struct refusal_counts *c)
{
    if (!atomic_load(&c->open))
        return;
    pthread_mutex_lock(&c->lock);
    bool busy = c->busy;
    if (busy)
        c->again = true; /* counts_written() goes on */
    else if (!(c->written = take(c)))
        buf_free(&c->json);
    else
        c->busy = true;
    bool begins = !busy && c->busy;
    pthread_mutex_unlock(&c->lock);
    if (!begins)
        return;
    c->job = (struct job){.run = write_counts, .done = counts_written, .deadline_ns = clock_ns() + WRITE_NS};
    enum err e = buf_str(&c->json).at ? pool_submit(c->pool, &c->job) : ERR_MEMORY;
    if (e)
        counts_written(&c->job, e);
}

/* On a worker. */
static enum err write_counts(struct job *job, struct pg *pg)
{
    struct refusal_counts *c = OWNER_OF(job, struct refusal_counts, job);
    struct pg_call call = audit_refusals(buf_str(&c->json).at);
    return pg_ask(pg, &call, job->deadline_ns);
}

static void counts_written(struct job *job, enum err e)
{
    struct refusal_counts *c = OWNER_OF(job, struct refusal_counts, job);
    if (e)
        log_warn("refusals not counted in the database", F_INT("requests", c->written), F_STR("error", err_name(e)));
    buf_free(&c->json);
    pthread_mutex_lock(&c->lock);
    bool again = c->again;
    c->busy = c->again = false;
    pthread_mutex_unlock(&c->lock);
    if (again)
        refusal_counts_flush(c);
}
