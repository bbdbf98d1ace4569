/* `reclaim orphans delete`: step 2 for an operator, whose word stands in for the code. */
#include "base/email.h"
#include "base/random.h"
#include "pg/tx.h"
#include "recovery/flow.h"
#include "recovery/statements.h"

/* The operator's stand-in for step 1: locks the address, writes the row of the log, and a code that nobody learns. */
static enum err vouch(struct flow *f, struct tx *tx, const struct operator_deletion *in, int *ret_refusal)
{
    struct digest hash;
    struct code_salt salt = code_salt_new();
    char hash_hex[DIGEST_HEX_LEN + 1], salt_hex[2 * CODE_SALT_LEN + 1];
    random_bytes(&hash, sizeof hash);
    digest_hex(&hash, hash_hex);
    code_salt_hex(&salt, salt_hex);
    struct pg_call calls[] = {
        {.ask = &cleanup_await_lock, .args = {pg_text(f->email.at)}},
        {.ask = &cleanup_store_operator,
         .args = {pg_text(f->subject.email_hash), pg_text(in->user_id), pg_text(hash_hex), pg_text(salt_hex),
                  pg_text(in->correlation_id), pg_text(in->step), pg_text_or_null(in->reason)}},
    };
    enum err e = tx_trip(tx, calls, COUNT_OF(calls));
    if (candidate_lock_denied(calls, COUNT_OF(calls))) {
        *ret_refusal = CLEANUP_BUSY;
        return OK;
    }
    if (e)
        return e;
    f->stored.log_id = pg_get_i64(&calls[1], 0, 0);
    if ((e = str_copy(pg_get(&calls[1], 0, 1), f->stored.created_at, sizeof f->stored.created_at)))
        return e;
    return str_copy(str_of(in->user_id), f->stored.user_id, sizeof f->stored.user_id);
}

/* The address, as it is in the row, and its keyed hash. Sets a refusal when the clean-up knows no such user. */
static enum err find_address(struct flow *f, struct pg *pg, const struct operator_deletion *in, struct arena *arena,
                             int *ret_refusal)
{
    struct pg_call found = {.ask = &cleanup_find_address, .args = {pg_text(in->user_id)}};
    struct str normalised;
    enum err e = pg_ask(pg, &found, f->job.deadline_ns);
    if (e)
        return e;
    if (found.rows != 1) {
        *ret_refusal = CLEANUP_UNKNOWN_USER;
        return OK;
    }
    f->email = arena_copy(arena, pg_get(&found, 0, 0));
    if (!f->email.at)
        return ERR_MEMORY;
    if (email_normalise(arena, f->email, &normalised)) /* another program's row: hashed as it is */
        normalised = f->email;
    struct counted email = counted_by_email(TIER_EMAIL, in->identifier_key, normalised);
    digest_hex(&email.subject, f->subject.email_hash);
    return OK;
}

enum err cleanup_delete_by_operator(struct pg *pg, const struct operator_deletion *in, int64_t deadline_ns,
                                    int *ret_refusal)
{
    AUTO(arena) struct arena *arena = arena_new(1024, 65536);
    struct cleanup context = {.contract = &contract_cleanup_v1, .orphans = in->orphans};
    struct flow f = {.context = &context,
                     .job.deadline_ns = deadline_ns,
                     .step = BODY_VALIDATE,
                     .subject = {.correlation_id = in->correlation_id, .step = in->step}};
    struct candidate who = {.refusal = 0};
    enum err e = arena ? find_address(&f, pg, in, arena, &who.refusal) : ERR_MEMORY;
    if (!e && !who.refusal) {
        AUTO(tx) struct tx *tx = tx_begin(pg, deadline_ns);
        tx_wait_for_locks(tx, CLEANUP_LOCK_MOST_MS);
        e = vouch(&f, tx, in, &who.refusal);
        if (!e && !who.refusal)
            e = orphan_lock_and_read(&f, tx, &who);
        if (!e && !who.refusal)
            e = orphan_delete(&f, tx, &who);
        candidate_unlocked(&f);
    }
    *ret_refusal = who.refusal;
    return e;
}
