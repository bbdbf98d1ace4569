/* Step 1: mails a code to the address, which proves in step 2 that the caller reads its mail.
 *
 * Requests that come while others are under way share a transaction: two trips for all of them. None of them depends on
 * another. When the transaction fails, run_step.c runs each in one of its own. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "pg/arrays.h"
#include "pg/tx.h"
#include "recovery/code_mail.h"
#include "recovery/flow.h"
#include "recovery/statements.h"

struct asked { /* one of the requests */
    struct flow *f;
    struct candidate who;
};

static enum err lock_and_read(struct asked *asked, size_t count, struct tx *tx, bool *ret_denied);
static enum err write_all(struct asked *asked, size_t count, struct pg *pg, struct tx *tx, bool *ret_denied);
static enum err promise(struct asked *asked, struct json_writer *codes, struct pg_call *ret_insert);
static void refuse_all(struct asked *asked, size_t count);
static enum err read_stored(const struct pg_call *stored, struct flow *f);

enum err request_codes(struct flow *const *flows, size_t count, struct pg *pg)
{
    struct asked asked[REQUESTS_MOST];
    int64_t deadline_ns = INT64_MAX;
    int lock_ms = CLEANUP_LOCK_MOST_MS;
    for (size_t i = 0; i < count; i++) {
        struct flow *f = flows[i];
        asked[i] = (struct asked){.f = f};
        f->blocked = false;
        deadline_ns = f->job.deadline_ns < deadline_ns ? f->job.deadline_ns : deadline_ns;
        lock_ms = candidate_lock_ms(f) < lock_ms ? candidate_lock_ms(f) : lock_ms;
    }
    assert(count > 0 && count <= REQUESTS_MOST);
    bool denied = false;
    AUTO(tx) struct tx *tx = tx_begin(pg, deadline_ns);
    tx_wait_for_locks(tx, lock_ms);
    enum err e = lock_and_read(asked, count, tx, &denied);
    if (!e && !denied)
        e = write_all(asked, count, pg, tx, &denied);
    if (denied && (!e || count == 1)) { /* the transaction has failed: the refusals are written without it */
        tx_cleanup(&tx);
        refuse_all(asked, count);
        e = write_all(asked, count, pg, NULL, &denied);
    }
    for (size_t i = 0; i < count; i++) {
        candidate_unlocked(flows[i]);
        if (e)
            work_item_cleanup(&flows[i]->item);
        else
            flows[i]->outcome = asked[i].who.refusal ? asked[i].who.refusal : CODE_SENT;
    }
    return e;
}

/* A lock that all need, or the only one of them, was not granted. */
static void refuse_all(struct asked *asked, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        work_item_cleanup(&asked[i].f->item);
        asked[i].who.refusal = CLEANUP_BUSY;
    }
}

/* Whether a request before this one is for the same address: it has the lock. */
static bool is_repeated(const struct asked *asked, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (str_eq(asked[i].f->email, asked[at].f->email))
            return true;
    return false;
}

static enum err decide(struct asked *asked, size_t at, const struct pg_call *locks, const struct pg_call *found)
{
    struct flow *f = asked[at].f;
    struct candidate *who = &asked[at].who;
    if (!pg_get_bool(locks, (int)at, 0) || is_repeated(asked, at)) {
        who->refusal = CLEANUP_BUSY;
        return OK;
    }
    candidate_locked(f);
    enum err e = candidate_read(found, (int)at, who);
    if (!e && !who->refusal && !post_has_provider(f->context->post))
        who->refusal = CLEANUP_MAIL_FAILED;
    return e;
}

/* Locks, users, ownership: one trip reads all that the decisions need. */
static enum err lock_and_read(struct asked *asked, size_t count, struct tx *tx, bool *ret_denied)
{
    struct cleanup *context = asked->f->context;
    AUTO(buf) struct buf addresses = buf_new(65536);
    for (size_t i = 0; i < count; i++)
        array_add_text(&addresses, asked[i].f->email);
    const char *all = array_end(&addresses);
    if (!all)
        return ERR_MEMORY;
    struct pg_call reads[] = {
        {.ask = &cleanup_try_locks, .args = {pg_text(all)}},
        {.ask = &context->orphans->candidates, .args = {pg_text(all)}},
        candidate_find_keys(context, all),
    };
    bool asks_keys = candidate_asks_keys(context);
    size_t calls = asks_keys ? 3 : 2;
    int64_t began_ns = clock_ns();
    enum err e = tx_trip(tx, reads, calls);
    for (size_t i = 0; i < count; i++)
        candidate_checked(asked[i].f, began_ns);
    if ((*ret_denied = candidate_lock_denied(reads, calls)))
        return OK;
    if (!e && (reads[0].rows != (int)count || reads[1].rows != (int)count))
        e = ERR_DATABASE;
    for (size_t i = 0; i < count && !e; i++)
        e = decide(asked, i, &reads[0], &reads[1]);
    for (size_t i = 0; i < count && !e && asks_keys; i++)
        candidate_read_keys(asked[i].f, &reads[2], &asked[i].who);
    return e;
}

/* Codes with their rows in the log, mails, and refusals; without a transaction there are refusals only. */
static enum err write_all(struct asked *asked, size_t count, struct pg *pg, struct tx *tx, bool *ret_denied)
{
    struct pg_call calls[1 + REQUESTS_MOST] = {0};
    struct flow *sent[REQUESTS_MOST];
    size_t n = 0, mails = 0;
    AUTO(buf) struct buf codes = buf_new(65536);
    struct json_writer w = json_to(&codes);
    json_open(&w, '[');
    enum err e = OK;
    for (size_t i = 0; i < count && !e; i++) {
        if (asked[i].who.refusal)
            continue;
        e = promise(&asked[i], &w, &calls[1 + mails]);
        sent[mails++] = asked[i].f;
    }
    json_close(&w, ']');
    if (e || codes.failed)
        return e ? e : codes.failed;
    calls[0] = (struct pg_call){
        .ask = &cleanup_store_codes,
        .args = {pg_text(buf_str(&codes).at), pg_i64(asked->f->context->contract->code_life_s)},
    };
    n = mails ? 1 + mails : 0;
    for (size_t i = 0; i < count; i++)
        if (asked[i].who.refusal)
            calls[n++] = flow_refusal(asked[i].f, asked[i].who.refusal);
    e = tx ? tx_commit(tx, calls, n) : pg_trip(pg, calls, n, asked->f->job.deadline_ns);
    *ret_denied = candidate_lock_denied(calls, n);
    for (size_t i = 0; i < mails && !e; i++) {
        work_inserted(sent[i]->item, &calls[1 + i]);
        e = read_stored(&calls[0], sent[i]);
    }
    return e;
}

/* The payload of the work item: enough to derive the code again, but not the code. */
static void write_payload(const struct flow *f, const struct candidate *who, const char *salt_hex, char into[512])
{
    snprintf(into, 512,
             "{\"template\":\"cleanup-code\",\"contract\":\"%s\",\"user_id\":\"%s\",\"salt\":\"%s\","
             "\"correlation_id\":\"%s\",\"email_hash\":\"%s\",\"language\":\"%s\"}",
             f->context->contract->name, who->user_id, salt_hex, f->rq->correlation_id, f->subject.email_hash,
             language_tag(f->language));
}

static void write_mail(const struct flow *f, const struct code *code, struct mail *ret)
{
    const struct contract *contract = f->context->contract;
    code_mail_write(&recovery_code_words,
                    &(struct code_letter){.design = post_design(f->context->post),
                                          .language = f->language,
                                          .shape = &contract->code,
                                          .code = code,
                                          .minutes = (int)(contract->code_life_s / 60),
                                          .reference = f->rq->correlation_id},
                    ret);
    ret->expires_us = clock_installation_us() + contract->code_life_s * 1000000;
    snprintf(ret->to, sizeof ret->to, "%.*s", STR_ARGS(f->email));
}

static void add_text(struct json_writer *w, const char *key, const char *text)
{
    json_key(w, key);
    json_str(w, str_of(text));
}

/* A new code: its row, and the work item that mails it. */
static enum err promise(struct asked *asked, struct json_writer *codes, struct pg_call *ret_insert)
{
    struct flow *f = asked->f;
    struct cleanup *context = f->context;
    struct code_salt salt = code_salt_new();
    struct code code = code_derive(context->code_keys, &context->contract->code, &salt, asked->who.user_id);
    struct digest hash = code_hash(context->code_keys, &salt, &code);
    char salt_hex[2 * CODE_SALT_LEN + 1], hash_hex[DIGEST_HEX_LEN + 1], payload[512];
    code_salt_hex(&salt, salt_hex);
    digest_hex(&hash, hash_hex);
    write_payload(f, &asked->who, salt_hex, payload);
    AUTO(mail) struct mail mail;
    write_mail(f, &code, &mail);
    secret_wipe(&code, sizeof code);

    json_open(codes, '{');
    add_text(codes, "email_hash", f->subject.email_hash);
    add_text(codes, "user_id", asked->who.user_id);
    add_text(codes, "code_hash", hash_hex);
    add_text(codes, "code_salt", salt_hex);
    add_text(codes, "correlation_id", f->rq->correlation_id);
    add_text(codes, "ip_hash", f->subject.ip_hash);
    json_close(codes, '}');
    f->item = mail_promise(context->post, context->engine, payload, &mail, ret_insert);
    return f->item ? OK : ERR_MEMORY;
}

static enum err read_stored(const struct pg_call *stored, struct flow *f)
{
    struct str hash = str_of(f->subject.email_hash);
    for (int row = 0; row < stored->rows; row++) {
        if (!str_eq(pg_get(stored, row, 0), hash))
            continue;
        f->log_id = pg_get_i64(stored, row, 1);
        return str_copy(pg_get(stored, row, 2), f->expires_at, sizeof f->expires_at);
    }
    return ERR_DATABASE;
}
