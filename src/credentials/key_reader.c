#include "credentials/key_reader.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/metrics.h"
#include "client/client.h"

#define READ_NS (5 * NS_PER_S)
#define KEEP_NS (5 * NS_PER_S)

METRIC_COUNTER(reads, "reclaim_key_set_reads_total", "Reads of RECLAIM_JWKS_URL, by outcome.", "outcome");

/* The address is stored as a hash: it may contain a key of its own. */
static const struct statement key_set_keep = {
    .name = "key_set_keep",
    .sql = "INSERT INTO reclaim.key_sets (url_hash, keys) VALUES ($1, $2)"
           " ON CONFLICT (url_hash) DO UPDATE SET keys = excluded.keys, read_at = pg_catalog.clock_timestamp()",
    .params = 2,
    .columns = "",
};
static const struct statement key_set_find = {
    .name = "key_set_find",
    .sql = "SELECT keys FROM reclaim.key_sets WHERE url_hash = $1",
    .params = 1,
    .columns = "keys:text",
};
const struct statement *const key_reader_statements[] = {&key_set_keep, &key_set_find};
const size_t key_reader_statement_count = COUNT_OF(key_reader_statements);

struct key_reader {
    struct key_reader_config config;
    char url_hash[DIGEST_HEX_LEN + 1];
    struct client *client;
    pthread_t thread;
    bool has_thread;

    /* Of the thread, or of key_reader_start() before there is one. */
    struct buf got; /* the text of the last answer */
    /* cache: key-set */
    struct buf set; /* the text that the keys are made of */
    char last_why[sizeof((struct why *)0)->text];

    pthread_mutex_t lock; /* guards what follows */
    bool stopping, asked, remakes, reached;
    int64_t read_due_ns, asked_ns; /* the next read; the last that was for an unknown key */
    struct key_wait *waits;
};

/* --- one read: on the reader's thread, or in key_reader_start() before there is one --- */

struct fetch {
    struct client_call call;
    struct buf *into;
    bool done;
};

static void fetched(struct client_call *call)
{
    struct fetch *f = OWNER_OF(call, struct fetch, call);
    f->done = true;
    buf_clear(f->into);
    if (!call->err)
        buf_add(f->into, call->answer);
}

static enum err fault_of(const struct client_call *call, struct why *why)
{
    if (call->err == ERR_FULL)
        return why_set(why, ERR_INPUT, "RECLAIM_JWKS_URL: the answer is longer than %zu KiB", CLIENT_BODY_MAX >> 10);
    if (call->err)
        return why_set(why, ERR_CLOSED, "RECLAIM_JWKS_URL cannot be read (%s)", err_name(call->err));
    if (call->status != 200)
        return why_set(why, ERR_CLOSED, "RECLAIM_JWKS_URL answers with status %d", call->status);
    return OK;
}

static enum err fetch(struct client *client, const char *url, struct buf *into, struct why *why)
{
    static const char *const headers[] = {"Accept: application/json", NULL};
    struct fetch f = {.call = {.url = url, .headers = headers, .limit_ns = READ_NS, .done = fetched}, .into = into};
    client_send(client, &f.call);
    while (!f.done)
        client_turn(client, clock_ns() + READ_NS);
    return fault_of(&f.call, why);
}

enum err key_set_fetch(const char *url, struct buf *ret, struct why *why)
{
    struct client *client = client_new(&(struct client_config){.connections_max = 1});
    if (!client)
        return why_set(why, ERR_MEMORY, "no memory for reading RECLAIM_JWKS_URL");
    enum err e = fetch(client, url, ret, why);
    client_free(client);
    return e;
}

/* Makes keys of this text and puts them into force. */
static enum err use_set(struct key_reader *r, struct str set, struct why *why)
{
    struct jwt_keys *keys;
    enum err e = r->config.make(r->config.context, set, &keys, why);
    if (!e)
        key_ring_put(r->config.ring, keys);
    return e;
}

static bool same_text(struct str a, struct str b)
{
    return a.at && b.at && str_eq(a, b);
}

/* A set that cannot be kept is read again at the next start. */
static void keep_set(const struct key_reader *r)
{
    AUTO(pg) struct pg *pg = pg_new(r->config.database_url, PG_PREPARE_OFF);
    struct pg_call call = {.ask = &key_set_keep, .args = {pg_text(r->url_hash), pg_text(buf_str(&r->set).at)}};
    struct why why = {"no memory"};
    int64_t deadline_ns = clock_ns() + KEEP_NS;
    enum err e = pg ? pg_connect(pg, deadline_ns, &why) : ERR_MEMORY;
    if (e || (e = pg_ask(pg, &call, deadline_ns)))
        log_warn("the key set was read, but the database does not keep it for the next start",
                 F_STR("error", err_name(e)));
}

/* ERR_INPUT for an answer that is no usable set: the keys in force stay. */
static enum err read_set(struct key_reader *r, struct why *why)
{
    enum err e = fetch(r->client, r->config.url, &r->got, why);
    struct str got = buf_str(&r->got);
    if (!e && same_text(got, buf_str(&r->set)))
        return OK;
    if (e || (e = use_set(r, got, why)))
        return e;
    buf_clear(&r->set);
    buf_add(&r->set, got);
    log_info("key set read", F_INT("bytes", (int64_t)got.len));
    keep_set(r);
    return OK;
}

/* Each new reason is logged once. */
static void note_outcome(struct key_reader *r, enum err e, const struct why *why)
{
    counter_add(&reads, 1, e ? "failed" : "done");
    const char *text = e ? why->text : "";
    if (e && strcmp(text, r->last_why) != 0)
        log_warn("the keys of the set read last stay in force", F_STR("why", text));
    memcpy(r->last_why, text, strlen(text) + 1);
}

/* --- the thread --- */

/* Takes what is to be done; false if nothing is due. */
static bool take_turn(struct key_reader *r, bool *ret_remakes, bool *ret_reads)
{
    pthread_mutex_lock(&r->lock);
    *ret_remakes = r->remakes;
    *ret_reads = r->asked || clock_ns() >= r->read_due_ns;
    r->remakes = false;
    bool stopping = r->stopping;
    pthread_mutex_unlock(&r->lock);
    return !stopping && (*ret_remakes || *ret_reads);
}

static void end_waits(struct key_reader *r, bool reached)
{
    pthread_mutex_lock(&r->lock);
    struct key_wait *waits = r->waits;
    r->waits = NULL;
    r->asked = false;
    r->reached = reached;
    r->read_due_ns = clock_ns() + (reached ? r->config.every_ns : r->config.again_ns);
    pthread_mutex_unlock(&r->lock);
    while (waits) {
        struct key_wait *wait = waits;
        waits = wait->next; /* before the call, which may free it */
        wait->read(wait, reached);
    }
}

static void *run(void *context)
{
    struct key_reader *r = context;
    bool stopping = false;
    while (!stopping) {
        struct why why = {""};
        bool remakes, reads_now;
        if (take_turn(r, &remakes, &reads_now)) {
            if (remakes && use_set(r, buf_str(&r->set), &why))
                log_error("keys for tokens cannot be made again", F_STR("why", why.text));
            if (reads_now) {
                enum err e = read_set(r, &why);
                note_outcome(r, e, &why);
                end_waits(r, e == OK);
            }
        }
        pthread_mutex_lock(&r->lock);
        stopping = r->stopping;
        int64_t until_ns = r->asked || r->remakes ? 0 : r->read_due_ns;
        pthread_mutex_unlock(&r->lock);
        if (!stopping && until_ns)
            client_turn(r->client, until_ns);
    }
    end_waits(r, false);
    return NULL;
}

/* --- for other threads --- */

enum key_news key_reader_await(struct key_reader *r, struct key_wait *wait)
{
    int64_t now_ns = clock_ns();
    enum key_news news = KEYS_AWAITED;
    pthread_mutex_lock(&r->lock);
    if (r->stopping)
        news = KEYS_OUT_OF_REACH;
    else if (!r->asked && r->asked_ns && now_ns < r->asked_ns + r->config.again_ns)
        news = r->reached ? KEYS_AS_PUBLISHED : KEYS_OUT_OF_REACH;
    if (news == KEYS_AWAITED) {
        if (!r->asked)
            r->asked_ns = now_ns;
        r->asked = true;
        wait->next = r->waits;
        r->waits = wait;
    }
    pthread_mutex_unlock(&r->lock);
    if (news == KEYS_AWAITED)
        client_wake(r->client);
    return news;
}

static void set_flag(struct key_reader *r, bool *flag)
{
    pthread_mutex_lock(&r->lock);
    *flag = true;
    pthread_mutex_unlock(&r->lock);
    client_wake(r->client);
}

void key_reader_remake(struct key_reader *r)
{
    set_flag(r, &r->remakes);
}

/* --- start and stop --- */

/* The set that the database keeps, when the URL cannot be read. */
static enum err use_kept_set(struct key_reader *r, struct pg *pg, struct why *why)
{
    struct pg_call call = {.ask = &key_set_find, .args = {pg_text(r->url_hash)}};
    enum err e = pg_ask(pg, &call, clock_ns() + KEEP_NS);
    if (e || call.rows == 0)
        return e ? e : ERR_MISSING;
    buf_clear(&r->set);
    buf_add(&r->set, pg_get(&call, 0, 0));
    return use_set(r, buf_str(&r->set), why);
}

static enum err read_first(struct key_reader *r, struct pg *pg, struct why *why)
{
    struct why kept = {""};
    enum err e = read_set(r, why);
    r->reached = !e;
    r->read_due_ns = clock_ns() + (e ? r->config.again_ns : r->config.every_ns);
    if (!e)
        return OK;
    if (use_kept_set(r, pg, &kept)) {
        kept = *why;
        return why_set(why, ERR_CLOSED, "%.200s, and the database keeps no set that was read before", kept.text);
    }
    note_outcome(r, e, why);
    return OK;
}

static struct key_reader *reader_new(const struct key_reader_config *config)
{
    struct key_reader *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    struct digest hash = digest_sha256(str_of(config->url));
    digest_hex(&hash, r->url_hash);
    r->config = *config;
    r->got = buf_new(CLIENT_BODY_MAX + 1);
    r->set = buf_new(CLIENT_BODY_MAX + 1);
    pthread_mutex_init(&r->lock, NULL);
    r->client = client_new(&(struct client_config){.connections_max = 1});
    if (r->client)
        return r;
    key_reader_stop(r);
    return NULL;
}

enum err key_reader_start(const struct key_reader_config *config, struct pg *pg, struct key_reader **ret,
                          struct why *why)
{
    struct key_reader *r = reader_new(config);
    if (!r)
        return why_set(why, ERR_MEMORY, "no memory for reading RECLAIM_JWKS_URL");
    enum err e = read_first(r, pg, why);
    if (!e && !(r->has_thread = pthread_create(&r->thread, NULL, run, r) == 0))
        e = why_set(why, ERR_MEMORY, "no thread for reading RECLAIM_JWKS_URL");
    if (e) {
        key_reader_stop(r);
        return e;
    }
    *ret = r;
    return OK;
}

void key_reader_stop(struct key_reader *r)
{
    if (!r)
        return;
    if (r->has_thread) {
        set_flag(r, &r->stopping);
        pthread_join(r->thread, NULL);
    }
    if (r->client)
        client_free(r->client);
    buf_free(&r->got);
    buf_free(&r->set);
    pthread_mutex_destroy(&r->lock);
    free(r);
}
