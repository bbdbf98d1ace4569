/* GET and DELETE /v1/limits/{key}: how much of each limit is used, and forgetting it. */
#include "api/db_request.h"
#include "base/json.h"
#include "console/statements.h"
#include "limits/keys.h"
#include "limits/store.h"

struct limits_request {
    struct db_request db;
    struct console *console;
    const struct caller *caller;
    struct limits_key key;
    bool resets;
    struct str found;
};

static enum err run_limits(struct db_request *db, struct pg *pg);
static void answer_limits(struct db_request *db);

/* False after a 400 was sent. */
static bool read_key(struct request *rq, struct limits_key *ret)
{
    struct str text = arena_copy(rq->arena, rq->params[0]), client = request_query(rq, "client");
    if (!text.at || limits_key_parse(rq->arena, text, ret)) {
        reply_refuse(rq, 400, "INVALID_KEY", "The key is ip:ADDRESS, email:ADDRESS or global.");
        return false;
    }
    if (client.len && (ret->kind != LIMITS_EMAIL || ip_parse(client, &ret->ip))) {
        reply_refuse(rq, 400, "INVALID_CLIENT", "client is an IP address, beside email:ADDRESS.");
        return false;
    }
    ret->has_client = client.len > 0;
    return true;
}

/* 1. On the loop. */
static void begin(struct request *rq, const struct caller *caller, struct console *console, bool resets)
{
    struct limits_request *l = db_request_new(rq, sizeof *l, run_limits, answer_limits);
    if (!l || !read_key(rq, &l->key))
        return;
    l->console = console;
    l->caller = caller;
    l->resets = resets;
    db_request_start(&l->db, atomic_load(&console->pool));
}

void limits_show_handle(struct request *rq, const struct caller *caller, void *console)
{
    begin(rq, caller, console, false);
}

void limits_reset_handle(struct request *rq, const struct caller *caller, void *console)
{
    begin(rq, caller, console, true);
}

/* The audit has the kind and the first digits of the hash, which tell two keys apart and nothing more. */
static enum err reset(struct limits_request *l, struct pg *pg, const struct counted *counted, size_t count)
{
    static const char *const kinds[] = {[LIMITS_GLOBAL] = "global", [LIMITS_IP] = "ip", [LIMITS_EMAIL] = "email"};
    const struct request *rq = l->db.rq;
    char key[COUNTED_KEY_MAX];
    enum err e = OK;
    for (size_t i = 0; !e && i < count; i++)
        e = limits_reset(pg, &counted[i], l->db.job.deadline_ns);
    if (e)
        return e;
    counted_key(&counted[0], key);
    struct str hash = str_of(key), kind;
    bool hashed = str_split(&hash, ':', &kind);
    struct str detail =
        arena_printf(rq->arena, "%s%s%.12s", kinds[l->key.kind], hashed ? ":" : "", hashed ? hash.at : "");
    struct pg_call call = console_audit(rq, l->caller, NULL, "limits-reset", detail.at);
    return pg_ask(pg, &call, l->db.job.deadline_ns);
}

static void write_number(struct json_writer *w, const char *name, bool off, int64_t number)
{
    json_key(w, name);
    if (off)
        json_nil(w);
    else
        json_i64(w, number);
}

static enum err write_tier(struct limits_request *l, struct pg *pg, const struct counted *counted,
                           const struct limit *limit, struct json_writer *w)
{
    struct limit_state state = {0};
    bool off = limit->requests == 0;
    enum err e = off ? OK : limit_read_state(pg, counted, limit, l->db.job.deadline_ns, &state);
    if (e)
        return e;
    json_open(w, '{');
    json_key(w, "tier");
    json_str(w, str_of(tier_name(counted->tier)));
    write_number(w, "requests", off, state.count);
    write_number(w, "limit", off, limit->requests);
    write_number(w, "window_seconds", off, limit->seconds);
    write_number(w, "left", off, state.count < limit->requests ? limit->requests - state.count : 0);
    write_number(w, "wait_seconds", off, (state.wait_us + 999999) / 1000000);
    json_close(w, '}');
    return OK;
}

/* 2. On a worker. */
static enum err run_limits(struct db_request *db, struct pg *pg)
{
    struct limits_request *l = OWNER_OF(db, struct limits_request, db);
    struct counted counted[LIMITS_KEY_TIERS] = {{0}};
    struct tier_table tiers = admission_tiers(l->console->admission);
    size_t count = limits_key_counted(&l->key, l->console->identifier_key, counted);
    enum err e = l->resets ? reset(l, pg, counted, count) : OK;
    AUTO(buf) struct buf out = buf_new(8192);
    struct json_writer w = json_to(&out);
    json_open(&w, '{');
    json_key(&w, "items");
    json_open(&w, '[');
    for (size_t i = 0; !e && i < count; i++)
        e = write_tier(l, pg, &counted[i], &tiers.of[counted[i].tier], &w);
    if (e)
        return e;
    json_close(&w, ']');
    json_close(&w, '}');
    l->found = arena_copy(db->rq->arena, buf_str(&out));
    return l->found.at ? OK : ERR_MEMORY;
}

/* 3. On the same worker. */
static void answer_limits(struct db_request *db)
{
    reply_body(db->rq, "application/json", OWNER_OF(db, struct limits_request, db)->found);
    reply_send(db->rq, 200);
}
