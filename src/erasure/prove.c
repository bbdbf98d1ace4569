#include "erasure/prove.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/random.h"
#include "base/restored.h"
#include "erasure/certificate.h"
#include "pg/arrays.h"
#include "pg/lock_ids.h"

#define SEAL_EVERY_NS (10 * NS_PER_S)
#define ROUND_NS (60 * NS_PER_S)
#define ALL_AT_LEAST_EVERY_NS (60 * NS_PER_S)
#define CERTIFICATES_AT_ONCE 500
#define ARENA_MAX ((size_t)64 * 1024 * 1024)
#define ARRAY_MAX ((size_t)256 * 1024 * 1024)
#define FACT_MAX (CERTIFICATE_MAX / 4 * 3 - (size_t)16 * 1024) /* as base64url, with the head and the path */

/* Deletions that other programs wrote are cleared a moment later; which logins are gone is known then. */
#define TO_JOURNAL                                                                                                     \
    "e.journal_hash IS NULL AND (e.cleared OR e.requested_at < (SELECT reclaim.now() - interval '1 minute'))"

METRIC_GAUGE(sealed_at, "reclaim_sealed_log_last_run_timestamp_seconds",
             "When this instance, leading, last had nothing left to seal.");
METRIC_COUNTER(issued, "reclaim_certificates_total", "Certificates of erasure issued.");

static const struct statement prove_waits = {
    .name = "prove_waits",
    .sql = "SELECT EXISTS (SELECT FROM reclaim.erasures WHERE settled_at IS NOT NULL AND certificate_id IS NULL)"
           " OR EXISTS (SELECT FROM reclaim.erasures e WHERE " TO_JOURNAL ") AS waits",
    .params = 0,
    .columns = "waits:bool",
};

/* Not while receipts are opened again: the last receipt may come at the same time, and settle the erasure. Those of the others are seen
 * by the next statement. */
static const struct statement prove_turn = {
    .name = "prove_turn",
    .sql = "SELECT pg_catalog.pg_try_advisory_xact_lock(" LOCK_CLASS ", " LOCK_CERTIFYING ") AS mine",
    .params = 0,
    .columns = "mine:bool",
};

/* The line before the next one, and whose line is to be written: with the users whose logins are gone. */
static const struct statement prove_last_line = {
    .name = "prove_last_line",
    .sql =
        "SELECT id, line, pg_catalog.encode(hash, 'hex') AS hash FROM reclaim.journal_lines ORDER BY id DESC LIMIT 1",
    .params = 0,
    .columns = "id:int8 line:text hash:text",
};

static const struct statement prove_erasures = {
    .name = "prove_erasures",
    .sql =
        "SELECT e.customer_id, reclaim.rfc3339(e.requested_at) AS requested, e.address_hash, e.link_hash,"
        " e.keyed_address, coalesce((SELECT pg_catalog.jsonb_agg(u.user_id ORDER BY u.user_id)"
        " FROM reclaim.erasure_users u WHERE u.customer_id = e.customer_id AND NOT EXISTS (SELECT FROM auth.users a"
        " WHERE a.id = u.user_id AND a.deleted_at IS NULL)), '[]')::text AS users"
        " FROM reclaim.erasures e WHERE " TO_JOURNAL " ORDER BY e.requested_at LIMIT $1::int8 FOR UPDATE SKIP LOCKED",
    .params = 1,
    .columns = "customer_id:uuid requested:text address_hash:text link_hash:text keyed_address:text users:text",
};

static const struct statement prove_lines = {
    .name = "prove_lines",
    .sql =
        "WITH line AS (SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::uuid[]) WITH ORDINALITY"
        " AS n (hash, line, kind, customer_id, place)), added AS (INSERT INTO reclaim.journal_lines (hash, line, kind)"
        " SELECT pg_catalog.decode(n.hash, 'hex'), n.line, n.kind FROM line n ORDER BY n.place)"
        " UPDATE reclaim.erasures e SET journal_hash = pg_catalog.decode(n.hash, 'hex') FROM line n"
        " WHERE e.customer_id = n.customer_id",
    .params = 4,
    .columns = "",
};

/* $1: the id of the last line that is on the disk. Neither this nor what follows waits for a row: what others write now has its turn in
 * the next round, and the eraser, which locks many rows in an order of its own, is never waited for. */
static const struct statement prove_journaled = {
    .name = "prove_journaled",
    .sql =
        "UPDATE reclaim.erasures e SET journaled = true WHERE e.ctid = ANY (ARRAY(SELECT o.ctid FROM reclaim.erasures o"
        " JOIN reclaim.journal_lines l ON l.hash = o.journal_hash WHERE NOT o.journaled AND o.journal_hash IS NOT NULL"
        " AND l.id <= $1::int8 FOR UPDATE OF o SKIP LOCKED))",
    .params = 1,
    .columns = "",
};

static const struct statement prove_claims = {
    .name = "prove_claims",
    .sql = "SELECT c.customer_id, c.settled_at::text AS settled, c.completed_at::text AS completed,"
           " reclaim.rfc3339(c.completed_at + $2::int8 * interval '1 millisecond') AS backups,"
           " reclaim.rfc3339(c.completed_at + greatest($2::int8, $3::int8) * interval '1 millisecond') AS records,"
           " c.claims::text AS claims FROM reclaim.erasure_claims($1::int4) c",
    .params = 3,
    .columns = "customer_id:uuid settled:text completed:text backups:text records:text claims:text",
};

static const struct statement prove_certificates = {
    .name = "prove_certificates",
    .sql = "INSERT INTO reclaim.erasure_certificates (certificate_id, customer_id, settled_at, completed_at, fact, jws)"
           " SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $4::timestamptz[], $5::text[],"
           " $6::text[])",
    .params = 6,
    .columns = "",
};

/* $1: as above; while another instance, which believes that it leads, has written more, that one goes on. An erasure that was opened
 * again meanwhile is settled at another time, and gets another certificate. */
static const struct statement prove_complete = {
    .name = "prove_complete",
    .sql = "UPDATE reclaim.erasures e SET completed_at = c.completed_at, certificate_id = c.certificate_id,"
           " rescan_at = coalesce(e.rescan_at, c.completed_at + interval '1 hour')"
           " FROM reclaim.erasure_certificates c WHERE e.ctid = ANY (ARRAY(SELECT o.ctid FROM reclaim.erasures o"
           " WHERE o.settled_at IS NOT NULL AND o.certificate_id IS NULL FOR UPDATE SKIP LOCKED))"
           " AND c.customer_id = e.customer_id AND c.settled_at = e.settled_at"
           " AND NOT EXISTS (SELECT FROM reclaim.journal_lines l WHERE l.id > $1::int8)",
    .params = 1,
    .columns = "",
};

const struct statement *const prove_statements[] = {&prove_waits,    &prove_turn,         &prove_last_line,
                                                    &prove_erasures, &prove_lines,        &prove_journaled,
                                                    &prove_claims,   &prove_certificates, &prove_complete};
const size_t prove_statement_count = COUNT_OF(prove_statements);

/* Certificates of one round, and the arrays that store them. */
struct certificates {
    struct pending {
        json_t *claims;
        char id[37];
        struct str customer_id, settled, completed;
        char *fact;
        struct digest leaf;
        int64_t position;
    } * each;
    int count;
    struct buf ids, customers, settled, completed, facts, jws, positions, hashes;
};

static void certificates_drop_last(struct certificates *all)
{
    struct pending *p = &all->each[--all->count];
    json_decref(p->claims);
    free(p->fact);
}

static void certificates_cleanup(struct certificates *all)
{
    while (all->count > 0)
        certificates_drop_last(all);
    struct buf *const arrays[] = {&all->ids,   &all->customers, &all->settled,   &all->completed,
                                  &all->facts, &all->jws,       &all->positions, &all->hashes};
    for (size_t i = 0; i < COUNT_OF(arrays); i++)
        buf_free(arrays[i]);
}

/* `until`: without bytes there is no end. */
static bool not_covered_add(json_t *list, const char *what, struct str until, const char *reason)
{
    json_t *time = until.at ? json_stringn(until.at, until.len) : NULL;
    return json_array_append_new(list, json_pack("{s:s, s:o*, s:s}", "what", what, "until", time, "reason", reason)) ==
           0;
}

/* What no erasure reaches, and what Reclaim itself keeps. */
static json_t *not_covered(const struct prover *prover, struct str backups_until, struct str records_until)
{
    static const char backups[] = "Backups made before the erasure are not changed. They are deleted when they expire;"
                                  " a backup that is restored before is erased again.";
    static const char events[] = "Events and messages that were delivered to other systems before the erasure are not"
                                 " called back; the event of the deletion was sent to the same systems.";
    static const char records[] =
        "Reclaim itself keeps ids and keyed hashes of the address, and neither name nor address:"
        " in its journal and audit log until then, with receipts and certificates for good.";
    json_t *list = json_array();
    if (list && (prover->backup_retention_ms == 0 || not_covered_add(list, "backups", backups_until, backups)) &&
        not_covered_add(list, "events", (struct str){NULL, 0}, events) &&
        not_covered_add(list, "records", records_until, records))
        return list;
    json_decref(list);
    return NULL;
}

/* Adds to the claims of the database what only the program knows. */
static enum err complete_claims(const struct prover *prover, const struct sealed_log *log, struct pending *p,
                                struct str backups_until, struct str records_until)
{
    random_uuid(p->id);
    if (json_object_set_new(p->claims, "iss", json_string("reclaim")) ||
        json_object_set_new(p->claims, "installation", json_string(log->installation)) ||
        json_object_set_new(p->claims, "jti", json_string(p->id)) ||
        json_object_set_new(p->claims, "epoch", json_integer(log->epoch)) ||
        json_object_set_new(p->claims, "not_covered", not_covered(prover, backups_until, records_until)))
        return ERR_MEMORY;
    p->fact = certificate_fact(p->claims);
    if (!p->fact)
        return ERR_MEMORY;
    p->leaf = merkle_leaf(str_of(p->fact));
    return OK;
}

/* Without those whose certificate would be larger than `reclaim verify` reads: they keep no other from being certified. */
static enum err read_claims(struct prover *prover, struct sealed_log *log, const struct pg_call *rows,
                            struct certificates *all)
{
    bool too_large = false;
    all->each = arena_take(log->arena, (rows->rows ? (size_t)rows->rows : 1) * sizeof *all->each);
    if (!all->each)
        return ERR_MEMORY;
    for (int row = 0; row < rows->rows; row++) {
        struct pending *p = &all->each[all->count++];
        *p = (struct pending){.claims = json_read_object(pg_get(rows, row, 5), NULL),
                              .customer_id = arena_copy(log->arena, pg_get(rows, row, 0)),
                              .settled = arena_copy(log->arena, pg_get(rows, row, 1)),
                              .completed = arena_copy(log->arena, pg_get(rows, row, 2))};
        if (!p->claims || !p->customer_id.at || !p->settled.at || !p->completed.at)
            return ERR_MEMORY;
        enum err e = complete_claims(prover, log, p, pg_get(rows, row, 3), pg_get(rows, row, 4));
        if (e)
            return e;
        if (strlen(p->fact) <= FACT_MAX) {
            p->position = sealed_log_add(log, &p->leaf);
            continue;
        }
        too_large = true;
        if (!prover->too_large)
            log_error("an erasure cannot be certified: its ledger is too long",
                      F_STR("customer_id", p->customer_id.at));
        certificates_drop_last(all);
    }
    prover->too_large = too_large;
    return OK;
}

static enum err sign_one(const struct sealed_log *log, struct pending *p, struct certificates *all)
{
    struct digest path[MERKLE_LEVELS];
    char hash[DIGEST_HEX_LEN + 1];
    struct certificate_place place = {
        .position = p->position, .size = (int64_t)log->after.size, .path = path, .root = log->root, .head = log->head};
    AUTO(buf) struct buf jws = buf_new(CERTIFICATE_MAX);
    place.path_len = merkle_batch_path(log->batch, (size_t)(p->position - (int64_t)log->before.size), path);
    enum err e = certificate_write(p->claims, log->clock_s, &place, log->key, &jws);
    if (e)
        return e;
    digest_hex(&p->leaf, hash);
    array_add_plain(&all->ids, str_of(p->id));
    array_add_plain(&all->customers, p->customer_id);
    array_add_text(&all->settled, p->settled);
    array_add_text(&all->completed, p->completed);
    array_add_text(&all->facts, str_of(p->fact));
    array_add_plain(&all->jws, buf_str(&jws));
    array_add_i64(&all->positions, p->position);
    array_add_plain(&all->hashes, str_of(hash));
    return OK;
}

static enum err certificate_calls(struct certificates *all, struct pg_call calls[2])
{
    const char *ids = array_end(&all->ids), *customers = array_end(&all->customers),
               *settled = array_end(&all->settled), *completed = array_end(&all->completed),
               *facts = array_end(&all->facts), *jws = array_end(&all->jws), *positions = array_end(&all->positions),
               *hashes = array_end(&all->hashes);
    if (!ids || !customers || !settled || !completed || !facts || !jws || !positions || !hashes)
        return ERR_MEMORY;
    calls[0] = (struct pg_call){
        .ask = &prove_certificates,
        .args = {pg_text(ids), pg_text(customers), pg_text(settled), pg_text(completed), pg_text(facts), pg_text(jws)}};
    calls[1] = (struct pg_call){.ask = &sealed_log_add_certificates,
                                .args = {pg_text(positions), pg_text(ids), pg_text(hashes)}};
    return OK;
}

/* Lines of the journal that one round writes, as arrays. */
struct lines {
    struct journal_chain chain;
    struct buf hashes, texts, kinds, customers;
    int count;
};

static void lines_cleanup(struct lines *lines)
{
    struct buf *const arrays[] = {&lines->hashes, &lines->texts, &lines->kinds, &lines->customers};
    for (size_t i = 0; i < COUNT_OF(arrays); i++)
        buf_free(arrays[i]);
}

static enum err add_line(struct lines *lines, enum journal_kind kind, const struct buf *text, struct str customer_id)
{
    char hash[DIGEST_HEX_LEN + 1];
    if (text->failed)
        return text->failed;
    digest_hex(&lines->chain.last, hash);
    array_add_plain(&lines->hashes, str_of(hash));
    array_add_text(&lines->texts, buf_str(text));
    array_add_plain(&lines->kinds, str_of(journal_kind_name(kind)));
    array_add_text(&lines->customers, customer_id);
    lines->count++;
    return OK;
}

/* A line that names one that Reclaim did not write would make every journal unusable. */
static enum err begin_chain(struct lines *lines, const struct prover *prover, const struct sealed_log *log,
                            const struct pg_call *last, struct why *why)
{
    enum err e = OK;
    lines->chain = (struct journal_chain){
        .key = log->key, .installation = log->installation, .epoch = log->epoch, .clock_s = log->clock_s};
    lines->chain.has_last = last->rows == 1;
    if (last->rows == 1)
        e = journal_row_check(prover->log.keys, pg_get_i64(last, 0, 0), pg_get(last, 0, 1), pg_get(last, 0, 2), why);
    return e || last->rows == 0 ? e : digest_parse(pg_get(last, 0, 2), &lines->chain.last);
}

/* A line for each erasure that has none yet. */
static enum err write_erasures(struct lines *lines, const struct pg_call *rows)
{
    enum err e = OK;
    for (int i = 0; i < rows->rows && !e; i++) {
        AUTO(buf) struct buf text = buf_new(JOURNAL_LINE_MAX);
        const struct journal_erasure erasure = {.customer_id = pg_get(rows, i, 0),
                                                .requested_at = pg_get(rows, i, 1),
                                                .address_hash = pg_get(rows, i, 2),
                                                .link_hash = pg_get(rows, i, 3),
                                                .keyed_address = pg_get(rows, i, 4),
                                                .users = pg_get(rows, i, 5)};
        journal_write_erasure(&lines->chain, &erasure, &text);
        e = add_line(lines, JOURNAL_ERASURE, &text, erasure.customer_id);
    }
    return e;
}

static enum err write_head(struct lines *lines, const struct sealed_log *log)
{
    AUTO(buf) struct buf text = buf_new(JOURNAL_LINE_MAX);
    if (log->count == 0)
        return OK;
    journal_write_head(&lines->chain, (int64_t)log->after.size, log->head, &text);
    return add_line(lines, JOURNAL_HEAD, &text, (struct str){NULL, 0});
}

static enum err lines_call(struct lines *lines, struct pg_call *ret)
{
    const char *hashes = array_end(&lines->hashes), *texts = array_end(&lines->texts),
               *kinds = array_end(&lines->kinds), *customers = array_end(&lines->customers);
    if (!hashes || !texts || !kinds || !customers)
        return ERR_MEMORY;
    *ret = (struct pg_call){.ask = &prove_lines,
                            .args = {pg_text(hashes), pg_text(texts), pg_text(kinds), pg_text(customers)}};
    return OK;
}

/* One transaction: lines of new erasures, new facts, certificates of settled erasures, and the head over both. */
static enum err seal_and_certify(struct prover *prover, struct pg *pg, struct arena *arena, struct certificates *all,
                                 struct lines *lines, struct sealed_up_to *up_to, bool *ret_more, struct why *why)
{
    struct pg_call calls[3 + SEALED_LOG_WRITES];
    size_t count = 0;
    struct sealed_log log;
    AUTO(tx) struct tx *tx = tx_begin(pg, clock_ns() + ROUND_NS);
    enum err e = sealed_log_begin(&log, &prover->log, tx, arena, CERTIFICATES_AT_ONCE, up_to);
    if (e)
        return e;
    struct pg_call reads[] = {{.ask = &prove_last_line},
                              {.ask = &prove_erasures, .args = {pg_i64(CERTIFICATES_AT_ONCE)}},
                              {.ask = &prove_turn}};
    if ((e = tx_trip(tx, reads, COUNT_OF(reads))) || (e = begin_chain(lines, prover, &log, &reads[0], why)) ||
        (e = write_erasures(lines, &reads[1])))
        return e;
    int64_t most = pg_get_bool(&reads[2], 0, 0) ? CERTIFICATES_AT_ONCE : 0;
    struct pg_call claims = {
        .ask = &prove_claims,
        .args = {pg_i64(most), pg_i64(prover->backup_retention_ms), pg_i64(prover->log.retention_ms)}};
    if ((e = tx_trip(tx, &claims, 1)) || (e = read_claims(prover, &log, &claims, all)) || (e = sealed_log_close(&log)))
        return e;
    bool journals = lines->count > 0; /* then their certificates may follow at once */
    if ((e = write_head(lines, &log)))
        return e;
    for (int i = 0; i < all->count && !e; i++)
        e = sign_one(&log, &all->each[i], all);
    if (!e && all->count)
        e = certificate_calls(all, calls);
    if (e)
        return e;
    count = all->count ? 2 : 0;
    count += sealed_log_writes(&log, calls + count);
    if (lines->count && (e = lines_call(lines, &calls[count++])))
        return e;
    *ret_more = log.more || journals || all->count == CERTIFICATES_AT_ONCE;
    return tx_commit(tx, calls, count);
}

static enum err cannot_journal(struct prover *prover, enum err e, const struct why *why)
{
    if (!prover->logged)
        log_error("erasures cannot be completed: the journal cannot be written", F_STR("why", why->text));
    prover->logged = true;
    keeper_note_failure();
    return e;
}

/* What is committed goes to the journal; what is there may be certified, and what is certified is complete. */
static enum err journal_and_complete(struct prover *prover, struct pg *pg)
{
    struct why why = {""};
    int64_t last;
    enum err e = keeper_sync(prover->keeper, pg, clock_ns() + ROUND_NS, &last, &why);
    if (e)
        return cannot_journal(prover, e, &why);
    prover->logged = false;
    struct pg_call calls[] = {{.ask = &prove_journaled, .args = {pg_i64(last)}},
                              {.ask = &prove_complete, .args = {pg_i64(last)}}};
    return restored_is_known() ? OK : pg_trip(pg, calls, COUNT_OF(calls), clock_ns() + ROUND_NS);
}

static enum err prove_round(struct prover *prover, struct pg *pg, struct sealed_up_to *up_to, bool *ret_more)
{
    AUTO(arena) struct arena *arena = arena_new((size_t)64 * 1024, ARENA_MAX);
    if (!arena)
        return ERR_MEMORY;
    struct certificates all = {.ids = buf_new(ARRAY_MAX),
                               .customers = buf_new(ARRAY_MAX),
                               .settled = buf_new(ARRAY_MAX),
                               .completed = buf_new(ARRAY_MAX),
                               .facts = buf_new(ARRAY_MAX),
                               .jws = buf_new(ARRAY_MAX),
                               .positions = buf_new(ARRAY_MAX),
                               .hashes = buf_new(ARRAY_MAX)};
    struct lines lines = {.hashes = buf_new(ARRAY_MAX),
                          .texts = buf_new(ARRAY_MAX),
                          .kinds = buf_new(ARRAY_MAX),
                          .customers = buf_new(ARRAY_MAX)};
    struct why why = {""};
    enum err e = seal_and_certify(prover, pg, arena, &all, &lines, up_to, ret_more, &why);
    if (!e)
        counter_add(&issued, (uint64_t)all.count);
    certificates_cleanup(&all);
    lines_cleanup(&lines);
    if (e && *why.text)
        return cannot_journal(prover, e, &why);
    return e ? e : journal_and_complete(prover, pg);
}

/* A round begins after the last row that was sealed; rows with smaller ids may be committed late. A look at those, which reads all that
 * other programs' long transactions keep from being passed over, takes a twentieth of the time at most. */
static void begin_rounds(struct prover *prover, bool *ret_all)
{
    *ret_all = clock_ns() >= prover->all_ns;
    if (*ret_all)
        prover->up_to = (struct sealed_up_to){0};
}

static void end_rounds(struct prover *prover, enum err e, bool all, int64_t began_ns)
{
    int64_t pause_ns = 20 * (clock_ns() - began_ns);
    if (e)
        prover->all_ns = 0; /* the database may be another one */
    else if (all)
        prover->all_ns = clock_ns() + (pause_ns < ALL_AT_LEAST_EVERY_NS ? pause_ns : ALL_AT_LEAST_EVERY_NS);
}

enum err prover_run(void *context, struct pg *pg, struct shift *shift)
{
    struct prover *prover = context;
    struct pg_call waits = {.ask = &prove_waits};
    if (restored_may_be())
        return OK;
    enum err e = pg_ask(pg, &waits, clock_ns() + ROUND_NS);
    bool all, due = !e && (pg_get_bool(&waits, 0, 0) || clock_ns() >= prover->seal_ns);
    if (!due)
        return e;
    int64_t began_ns = clock_ns();
    prover->seal_ns = began_ns + SEAL_EVERY_NS;
    begin_rounds(prover, &all);
    for (bool more = true; !e && more && shift_goes_on(shift);) {
        more = false;
        e = prove_round(prover, pg, &prover->up_to, &more);
    }
    end_rounds(prover, e, all, began_ns);
    if (!e)
        gauge_set(&sealed_at, (double)clock_wall_us() / 1e6);
    return e == ERR_CONFLICT ? OK : e;
}
