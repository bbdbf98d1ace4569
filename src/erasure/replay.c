#include "erasure/replay.h"

#include <string.h>

#include "base/clock.h"
#include "erasure/journal_keeper.h"
#include "pg/lock_ids.h"
#include "pg/tx.h"
#include "proof/journal_line.h"

#define BATCH 1000
#define BATCH_NS (120 * NS_PER_S)
#define WHOLE_NS (3600 * NS_PER_S) /* for what is no batch, and for one customer alone */
#define LOCK_MS 20000
#define CONFLICTS_MAX 5

static const struct statement replay_needed = {
    .name = "replay_needed",
    .sql = "SELECT i.restored_at IS NOT NULL OR EXISTS (SELECT FROM reclaim.journal_lines WHERE lost) AS needed"
           " FROM reclaim.installation i",
    .params = 0,
    .columns = "needed:bool",
};

/* What the journal says of epochs, keys and times: of all lines, since the greatest may be of any. */
static const struct statement replay_lost = {
    .name = "replay_lost",
    .sql = "SELECT count(*) FILTER (WHERE l.kind = 'erasure') AS erasures, coalesce(max((l.claims ->> 'epoch')::int4), "
           "1) AS epoch,"
           " pg_catalog.to_json(pg_catalog.array_agg(DISTINCT l.claims ->> 'kid'))::text AS kids,"
           " pg_catalog.to_timestamp(min((l.claims ->> 'at')::float8))::text AS since"
           " FROM (SELECT n.kind, pg_catalog.split_part(n.line, E'\\t', 1)::jsonb AS claims"
           " FROM reclaim.journal_lines n WHERE n.lost) AS l",
    .params = 0,
    .columns = "erasures:int8 epoch:int4 kids:text since:text",
};

static const struct statement replay_epoch = {
    .name = "replay_epoch",
    .sql = "SELECT epoch, events FROM reclaim.replay_epoch($1::int4, $2::int4, $3::text::timestamptz)",
    .params = 3,
    .columns = "epoch:int4 events:int8",
};

static const struct statement replay_access = {
    .name = "replay_access",
    .sql = "SELECT codes, sessions, keys, mails FROM reclaim.replay_access($1::bool)",
    .params = 1,
    .columns = "codes:int8 sessions:int8 keys:int8 mails:int8",
};

static const struct statement replay_batch = {
    .name = "replay_batch",
    .sql = "SELECT last, lines, erased, absent FROM reclaim.replay_erasures($1::int8, $2::int4)",
    .params = 2,
    .columns = "last:int8 lines:int4 erased:int4 absent:int4",
};

static const struct statement replay_dates = {
    .name = "replay_dates",
    .sql = "SELECT moved FROM reclaim.replay_dates($1::int4)",
    .params = 1,
    .columns = "moved:int4",
};

static const struct statement replay_rescan = {
    .name = "replay_rescan",
    .sql = "SELECT reclaim.cascade_rescan_ask(NULL) AS erasures",
    .params = 0,
    .columns = "erasures:int8",
};

static const struct statement replay_next = {
    .name = "replay_next",
    .sql = "SELECT id, pg_catalog.split_part(line, E'\\t', 1)::jsonb ->> 'customer' AS customer_id"
           " FROM reclaim.journal_lines WHERE lost AND kind = 'erasure' AND id > $1::int8 ORDER BY id LIMIT 1",
    .params = 1,
    .columns = "id:int8 customer_id:text",
};

/* The last line, and the last of the other branch: of what this database wrote, or of what it lacked. */
static const struct statement replay_tips = {
    .name = "replay_tips",
    .sql =
        "SELECT pg_catalog.encode(l.hash, 'hex') AS last, l.imported, pg_catalog.encode(o.hash, 'hex') AS other,"
        " (SELECT count(*) FROM reclaim.journal_lines n WHERE n.lost AND n.kind = 'erasure') AS left_over,"
        " i.epoch, i.proof_generation AS generation, extract(epoch FROM pg_catalog.clock_timestamp())::int8 AS clock,"
        " (extract(epoch FROM i.created_at) * 1000000)::int8::text AS created, l.id AS last_id, l.line AS last_line,"
        " o.id AS other_id, o.line AS other_line, i.restored_at IS NULL AS over"
        " FROM reclaim.installation i CROSS JOIN (SELECT * FROM reclaim.journal_lines ORDER BY id DESC LIMIT 1) l"
        " LEFT JOIN LATERAL (SELECT * FROM reclaim.journal_lines n WHERE n.imported <> l.imported ORDER BY n.id DESC"
        " LIMIT 1) o ON true",
    .params = 0,
    .columns = "last:text imported:bool other:text left_over:int8 epoch:int4 generation:int4 clock:int8 created:text"
               " last_id:int8 last_line:text other_id:int8 other_line:text over:bool",
};

static const struct statement replay_lock = {
    .name = "replay_lock",
    .sql = "SELECT pg_catalog.pg_advisory_xact_lock(" LOCK_CLASS ", " LOCK_SEALED_LOG ")::text AS nothing",
    .params = 0,
    .columns = "nothing:text",
};

static const struct statement replay_end = {
    .name = "replay_end",
    .sql =
        "WITH line AS (INSERT INTO reclaim.journal_lines (hash, line, kind) VALUES (pg_catalog.decode($1, 'hex'), $2,"
        " 'restore')), found AS (UPDATE reclaim.journal_lines SET lost = false WHERE lost),"
        " free AS (DELETE FROM reclaim.erased_before)"
        " UPDATE reclaim.installation SET restored_at = NULL",
    .params = 2,
    .columns = "",
};

const struct statement *const replay_statements[] = {&replay_needed, &replay_lost,  &replay_epoch,  &replay_access,
                                                     &replay_batch,  &replay_dates, &replay_rescan, &replay_next,
                                                     &replay_tips,   &replay_lock,  &replay_end};
const size_t replay_statement_count = COUNT_OF(replay_statements);

enum err replay_is_needed(struct pg *pg, int64_t deadline_ns, bool *ret)
{
    struct pg_call call = {.ask = &replay_needed};
    enum err e = pg_ask(pg, &call, deadline_ns);
    *ret = !e && pg_get_bool(&call, 0, 0);
    return e;
}

static int greatest_generation(const struct proof_keys *keys, struct str kids)
{
    AUTO(json) json_t *list = kids.at ? json_read_array(kids, NULL) : NULL;
    int greatest = 1;
    size_t i;
    const json_t *kid;
    json_array_foreach(list, i, kid) for (int g = 1; g <= PROOF_GENERATIONS;
                                          g++) if (g > greatest && json_is_string(kid) &&
                                                   strcmp(json_string_value(kid),
                                                          keys->generations[g - 1].public.kid) == 0) greatest = g;
    return greatest;
}

/* A statement that may take longer than those of a session: its transaction has a time-out of its own. A conflict with what servers do
 * meanwhile is tried again. `lock_ms`: 0 for no other limit. */
static enum err ask_long(struct replay *r, struct pg_call *call, int64_t limit_ns, int lock_ms)
{
    enum err e = ERR_CONFLICT;
    for (int tries = 0; e == ERR_CONFLICT && tries < CONFLICTS_MAX; tries++) {
        AUTO(tx) struct tx *tx = tx_begin(r->pg, clock_ns() + limit_ns);
        if (lock_ms)
            tx_wait_for_locks(tx, lock_ms);
        e = tx_commit(tx, call, 1);
    }
    return e;
}

/* `ret_over`: another replay has ended meanwhile. */
static enum err begin(struct replay *r, bool *ret_over)
{
    struct pg_call lost = {.ask = &replay_lost};
    enum err e = ask_long(r, &lost, WHOLE_NS, 0);
    if (e)
        return e;
    r->of += pg_get_i64(&lost, 0, 0);
    char since[48] = "";
    if ((e = str_copy(pg_get(&lost, 0, 3), since, sizeof since)))
        return e;
    struct pg_call epoch = {.ask = &replay_epoch,
                            .args = {pg_i64(pg_get_i64(&lost, 0, 1)),
                                     pg_i64(greatest_generation(r->keys, pg_get(&lost, 0, 2))),
                                     *since ? pg_text(since) : pg_null()}};
    if ((e = ask_long(r, &epoch, WHOLE_NS, LOCK_MS)))
        return e;
    r->epoch = pg_get_i64(&epoch, 0, 0);
    if ((*ret_over = pg_is_null(&epoch, 0, 1)))
        return OK;
    r->events += pg_get_i64(&epoch, 0, 1);
    struct pg_call access = {.ask = &replay_access, .args = {pg_text(r->keeps_keys ? "true" : "false")}};
    if ((e = ask_long(r, &access, WHOLE_NS, 0)))
        return e;
    r->codes += pg_get_i64(&access, 0, 0);
    r->sessions += pg_get_i64(&access, 0, 1);
    r->api_keys += pg_get_i64(&access, 0, 2);
    r->mails += pg_get_i64(&access, 0, 3);
    return OK;
}

static enum err note_failure(struct replay *r, int64_t *after, const char *sqlstate)
{
    struct pg_call next = {.ask = &replay_next, .args = {pg_i64(*after)}};
    enum err e = pg_ask(r->pg, &next, clock_ns() + BATCH_NS);
    if (e || next.rows == 0)
        return e;
    *after = pg_get_i64(&next, 0, 0);
    if (r->failed++ == 0) {
        memcpy(r->sqlstate, sqlstate, sizeof r->sqlstate);
        e = str_copy(pg_get(&next, 0, 1), r->failed_customer, sizeof r->failed_customer);
    }
    return e;
}

/* A batch that fails, or takes too long, is halved until the customer that cannot be erased is alone. */
static enum err erase_all(struct replay *r)
{
    int64_t size = BATCH, after = 0;
    for (;;) {
        struct pg_call call = {.ask = &replay_batch, .args = {pg_i64(after), pg_i64(size)}};
        enum err e = ask_long(r, &call, size > 1 ? BATCH_NS : WHOLE_NS, 0);
        bool refused = e == ERR_DATABASE || (e == ERR_TIMEOUT && pg_is_up(r->pg));
        if (refused && size > 1) {
            size = (size + 1) / 2;
            continue;
        }
        if (refused) {
            if ((e = note_failure(r, &after, call.sqlstate)))
                return e;
            continue;
        }
        if (e)
            return e;
        if (pg_get_i64(&call, 0, 1) == 0)
            return OK;
        after = pg_get_i64(&call, 0, 0);
        r->done += pg_get_i64(&call, 0, 1);
        r->erased += pg_get_i64(&call, 0, 2);
        r->absent += pg_get_i64(&call, 0, 3);
        size = size * 2 < BATCH ? size * 2 : BATCH;
        if (r->progress)
            r->progress(r->context, r->done, r->of);
    }
}

/* The backup does not know who recovered since, nor what came late to participants whose erasure was complete. */
static enum err take_care(struct replay *r)
{
    struct pg_call dates = {.ask = &replay_dates, .args = {pg_i64(BATCH)}};
    for (int64_t moved = 1; moved > 0;) {
        enum err e = ask_long(r, &dates, WHOLE_NS, 0);
        if (e)
            return e;
        moved = pg_get_i64(&dates, 0, 0);
        r->dates += moved;
    }
    struct pg_call rescan = {.ask = &replay_rescan};
    return ask_long(r, &rescan, WHOLE_NS, 0);
}

static enum err check_tips(const struct replay *r, const struct pg_call *tips, struct why *why)
{
    enum err e = journal_row_check(r->keys, pg_get_i64(tips, 0, 8), pg_get(tips, 0, 9), pg_get(tips, 0, 0), why);
    return e || pg_is_null(tips, 0, 2)
               ? e
               : journal_row_check(r->keys, pg_get_i64(tips, 0, 10), pg_get(tips, 0, 11), pg_get(tips, 0, 2), why);
}

/* Writes the line that ends the replay, and lets the instances go on. `ret_more`: an instance has recorded lines of its journal since
 * the last erasure; nothing was written. Nor is it when another replay has ended meanwhile. */
static enum err end(struct replay *r, bool *ret_more, struct why *why)
{
    AUTO(tx) struct tx *tx = tx_begin(r->pg, clock_ns() + WHOLE_NS);
    AUTO(buf) struct buf text = buf_new(JOURNAL_LINE_MAX);
    char installation[INSTALLATION_ID_LEN + 1], hash[DIGEST_HEX_LEN + 1];
    struct digest other = {0};
    struct pg_call reads[] = {{.ask = &replay_lock}, {.ask = &replay_tips}}, *tips = &reads[1];
    enum err e = tx_trip(tx, reads, COUNT_OF(reads));
    *ret_more = !e && tips->rows && pg_get_i64(tips, 0, 3) > 0;
    if (e || tips->rows == 0 || *ret_more || pg_get_bool(tips, 0, 12) || (e = check_tips(r, tips, why)))
        return e;
    installation_name(r->keys, pg_get(tips, 0, 7), installation);
    struct journal_chain chain = {.key = &r->keys->generations[pg_get_i64(tips, 0, 5) - 1],
                                  .installation = installation,
                                  .epoch = pg_get_i64(tips, 0, 4),
                                  .clock_s = pg_get_i64(tips, 0, 6),
                                  .has_last = true};
    if ((e = digest_parse(pg_get(tips, 0, 0), &chain.last)) ||
        (!pg_is_null(tips, 0, 2) && (e = digest_parse(pg_get(tips, 0, 2), &other))))
        return e;
    journal_write_restore(&chain, pg_is_null(tips, 0, 2) ? NULL : &other, !pg_get_bool(tips, 0, 1), r->of, &text);
    digest_hex(&chain.last, hash);
    if (text.failed)
        return text.failed;
    struct pg_call write = {.ask = &replay_end, .args = {pg_text(hash), pg_text(buf_str(&text).at)}};
    return tx_commit(tx, &write, 1);
}

enum err replay_erasures(struct replay *r, struct why *why)
{
    enum err e = OK;
    for (bool more = true, over = false; more && !e && r->failed == 0;) {
        more = false;
        if (!(e = begin(r, &over)) && !over && !(e = erase_all(r)) && r->failed == 0 && !(e = take_care(r)))
            e = end(r, &more, why);
    }
    if (e && *why->text)
        return e;
    if (e)
        return why_set(why, e, "the replay is not finished (%s%s%s); it can be repeated", err_name(e),
                       *pg_fault(r->pg)->sqlstate ? ", SQLSTATE " : "", pg_fault(r->pg)->sqlstate);
    return OK;
}
