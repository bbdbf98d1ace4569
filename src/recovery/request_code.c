/* Step 1: mails a code to the address, which proves in step 2 that the caller reads its mail. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "pg/tx.h"
#include "recovery/code_mail.h"
#include "recovery/flow.h"
#include "recovery/statements.h"

static enum err lock_and_read(struct flow *f, struct tx *tx, struct candidate *ret);
static void write_payload(const struct flow *f, const struct candidate *who, const char *salt_hex, char into[512]);
static void write_mail(const struct flow *f, const struct code *code, struct mail *ret);

enum err request_code(struct flow *f, struct pg *pg)
{
    struct cleanup *context = f->context;
    struct candidate who = {.refusal = 0};
    f->blocked = false;
    AUTO(tx) struct tx *tx = tx_begin(pg, f->job.deadline_ns);
    tx_wait_for_locks(tx, candidate_lock_ms(f));
    enum err e = lock_and_read(f, tx, &who);
    if (e)
        return e;
    if (who.refusal)
        return flow_refuse(f, pg, tx, who.refusal);

    struct code_salt salt = code_salt_new();
    struct code code = code_derive(context->code_keys, &context->contract->code, &salt, who.user_id);
    struct digest hash = code_hash(context->code_keys, &salt, &code);
    char salt_hex[2 * CODE_SALT_LEN + 1], hash_hex[DIGEST_HEX_LEN + 1], payload[512];
    code_salt_hex(&salt, salt_hex);
    digest_hex(&hash, hash_hex);
    write_payload(f, &who, salt_hex, payload);
    AUTO(mail) struct mail mail;
    write_mail(f, &code, &mail);

    struct pg_call writes[2] = {
        {.ask = &cleanup_store_code,
         .args = {pg_text(f->subject.email_hash), pg_text(who.user_id), pg_text(hash_hex), pg_text(salt_hex),
                  pg_i64(context->contract->code_life_s), pg_text(f->rq->correlation_id), pg_text(f->subject.ip_hash)}},
    };
    AUTO(work_item) struct work_item *item = mail_promise(context->post, context->engine, payload, &mail, &writes[1]);
    secret_wipe(&code, sizeof code);
    if (!item)
        return ERR_MEMORY;
    if ((e = tx_commit(tx, writes, COUNT_OF(writes))))
        return e;

    f->log_id = pg_get_i64(&writes[0], 0, 0);
    if ((e = str_copy(pg_get(&writes[0], 0, 1), f->expires_at, sizeof f->expires_at)))
        return e;
    f->outcome = CODE_SENT;
    f->promised = writes[1];
    f->item = item; /* sent by run_step.c */
    item = NULL;
    return OK;
}

/* Lock, user, ownership: one trip reads all that the decision needs. */
static enum err lock_and_read(struct flow *f, struct tx *tx, struct candidate *ret)
{
    struct pg_call reads[] = {
        candidate_try_lock(f),
        {.ask = &f->context->orphans->candidate, .args = {pg_text(f->email.at)}},
        candidate_find_keys(f),
    };
    bool asks_keys = candidate_asks_keys(f);
    size_t count = asks_keys ? 3 : 2;
    int64_t began_ns = clock_ns();
    enum err e = tx_trip(tx, reads, count);
    candidate_checked(f, began_ns);
    if (candidate_lock_denied(reads, count)) {
        ret->refusal = CLEANUP_BUSY;
        return OK;
    }
    if (e)
        return e;
    candidate_locked(f);
    if ((e = candidate_read(&reads[1], ret)))
        return e;
    if (asks_keys)
        candidate_read_keys(f, &reads[2], ret);
    if (!ret->refusal && !post_has_provider(f->context->post))
        ret->refusal = CLEANUP_MAIL_FAILED;
    return OK;
}

/* The payload of the work item: enough to derive the code again, but not the code. */
static void write_payload(const struct flow *f, const struct candidate *who, const char *salt_hex, char into[512])
{
    snprintf(into, 512,
             "{\"template\":\"cleanup-code\",\"contract\":\"%s\",\"user_id\":\"%s\",\"salt\":\"%s\","
             "\"correlation_id\":\"%s\",\"email_hash\":\"%s\"}",
             f->context->contract->name, who->user_id, salt_hex, f->rq->correlation_id, f->subject.email_hash);
}

static void write_mail(const struct flow *f, const struct code *code, struct mail *ret)
{
    const struct contract *contract = f->context->contract;
    code_mail_write(&contract->code, code, (int)(contract->code_life_s / 60), f->rq->correlation_id, ret);
    ret->expires_us = clock_wall_us() + contract->code_life_s * 1000000;
    snprintf(ret->to, sizeof ret->to, "%.*s", STR_ARGS(f->email));
}
