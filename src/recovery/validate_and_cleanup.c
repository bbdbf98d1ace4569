/* Step 2: with the right code, deletes the orphan in one transaction, or not at all.
 *
 * The code is checked first, in a transaction of its own that touches none of the product's tables: a caller who guesses
 * codes never waits for a row or a table that another program holds. */
#include <string.h>

#include "base/email.h"
#include "base/random.h"
#include "pg/tx.h"
#include "recovery/flow.h"
#include "recovery/statements.h"

static enum err prove(struct flow *f, struct pg *pg, int *ret_refusal);
static enum err lock_and_read(struct flow *f, struct tx *tx, struct candidate *ret);
static enum err delete_orphan(struct flow *f, struct tx *tx, struct candidate *who);

enum err validate_and_cleanup(struct flow *f, struct pg *pg)
{
    struct candidate who = {.refusal = 0};
    f->blocked = false;
    enum err e = f->proven ? OK : prove(f, pg, &who.refusal); /* a run after a conflict has the proof already */
    if (e)
        return e;
    if (who.refusal)
        return flow_refuse(f, pg, NULL, who.refusal);

    AUTO(tx) struct tx *tx = tx_begin(pg, f->job.deadline_ns);
    tx_wait_for_locks(tx, candidate_lock_ms(f));
    if ((e = lock_and_read(f, tx, &who)) || (!who.refusal && (e = delete_orphan(f, tx, &who))))
        return e;
    if (f->blocked)
        tx_cleanup(&tx); /* the deletion may have failed, and the transaction with it */
    if (who.refusal)
        return flow_refuse(f, pg, f->blocked ? NULL : tx, who.refusal);
    f->outcome = USER_DELETED;
    return OK;
}

static enum err read_stored(const struct pg_call *taken, struct stored_code *ret)
{
    enum err e = digest_parse(pg_get(taken, 0, 0), &ret->hash);
    if (e || (e = code_salt_parse(pg_get(taken, 0, 1), &ret->salt)) ||
        (e = str_copy(pg_get(taken, 0, 4), ret->created_at, sizeof ret->created_at)))
        return e;
    ret->log_id = pg_get_i64(taken, 0, 3);
    return str_copy(pg_get(taken, 0, 2), ret->user_id, sizeof ret->user_id);
}

static bool is_right(const struct flow *f)
{
    struct digest typed = code_hash(f->context->code_keys, &f->stored.salt, &f->code);
    return digest_eq(&typed, &f->stored.hash);
}

/* The address's limit refuses wrong codes only. */
static int wrong_code(const struct flow *f, int refusal)
{
    return ticket_soft_is_full(&f->ticket) ? CLEANUP_RATE_LIMITED : refusal;
}

/* Uses one of the tries that the code has for this client's network, committed before the code is compared. */
static enum err prove(struct flow *f, struct pg *pg, int *ret_refusal)
{
    struct pg_call calls[] = {
        candidate_try_lock(f),
        {.ask = &cleanup_take_try,
         .args = {pg_text(f->subject.email_hash), pg_text(f->subject.ip_hash),
                  pg_i64(code_tries_max(&f->context->contract->code))}},
    };
    const struct pg_call *taken = &calls[1];
    AUTO(tx) struct tx *tx = tx_begin(pg, f->job.deadline_ns);
    tx_wait_for_locks(tx, candidate_lock_ms(f));
    enum err e = tx_commit(tx, calls, COUNT_OF(calls));
    if (candidate_lock_denied(calls, COUNT_OF(calls))) {
        *ret_refusal = CLEANUP_BUSY;
        return OK;
    }
    if (e)
        return e;
    if (taken->rows == 0) {
        *ret_refusal = wrong_code(f, (int)f->context->contract->expired);
        return OK;
    }
    if ((e = read_stored(taken, &f->stored)))
        return e;
    f->proven = is_right(f);
    if (!f->proven)
        *ret_refusal = wrong_code(f, CLEANUP_WRONG_CODE);
    return OK;
}

/* The user and what it owns, both kept from changing until the transaction ends. */
static enum err lock_and_read(struct flow *f, struct tx *tx, struct candidate *ret)
{
    const struct orphan_statements *orphans = f->context->orphans;
    struct pg_call reads[6] = {
        {.ask = &cleanup_await_lock, .args = {pg_text(f->email.at)}},
        {.ask = &cleanup_find_code, .args = {pg_text(f->subject.email_hash), pg_i64(f->stored.log_id)}},
        {.ask = &cleanup_lock_user, .args = {pg_text(f->stored.user_id)}},
    };
    size_t count = 3;
    if (orphans->lock_tables.sql)
        reads[count++] = (struct pg_call){.ask = &orphans->lock_tables};
    reads[count++] = (struct pg_call){.ask = &orphans->candidate, .args = {pg_text(f->email.at)}};
    const struct pg_call *code = &reads[1], *locked = &reads[2], *found = &reads[count - 1];
    bool asks_keys = candidate_asks_keys(f);
    if (asks_keys)
        reads[count++] = candidate_find_keys(f);

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
    if (code->rows == 0) {
        ret->refusal = (int)f->context->contract->expired;
        return OK;
    }
    if ((e = candidate_read(found, ret)))
        return e;
    if (ret->refusal == CLEANUP_FAULT || ret->refusal == CLEANUP_UNKNOWN_USER)
        return OK;
    if (strcmp(ret->user_id, f->stored.user_id) != 0)
        ret->refusal = CLEANUP_UNKNOWN_USER; /* another account has the address since */
    else if (locked->rows == 0)
        ret->refusal = CLEANUP_FAULT; /* visible but not lockable: row security hides it from updates */
    if (asks_keys)
        candidate_read_keys(f, found + 1, ret);
    return OK;
}

static enum err delete_orphan(struct flow *f, struct tx *tx, struct candidate *who)
{
    const struct stored_code *stored = &f->stored;
    f->classification = who->verified ? "case_1_2" : "case_1_1";
    struct pg_call writes[] = {
        {.ask = &cleanup_delete_user, .args = {pg_text(stored->user_id)}},
        {.ask = &cleanup_drop_code, .args = {pg_text(f->subject.email_hash), pg_i64(stored->log_id)}},
        audit_completed(&f->subject, stored->log_id, stored->created_at, f->classification),
        {.ask = &cleanup_check_keys},
    };
    size_t count = COUNT_OF(writes) - !atomic_load(&f->context->keys.any);
    enum err e = tx_trip(tx, writes, count);
    if (candidate_lock_denied(writes, count)) {
        who->refusal = CLEANUP_BUSY;
        return OK;
    }
    if (e && (candidate_key_violated(&writes[0]) || candidate_key_violated(&writes[3]))) {
        f->blocked = true;
        who->refusal = CLEANUP_NOT_ORPHANED;
        return OK;
    }
    if (e)
        return e;
    /* Every deletion has its row in the log, or does not happen. */
    for (size_t i = 0; i < 3; i++)
        if (writes[i].rows != 1)
            return ERR_DATABASE;
    if ((e = str_copy(str_of(stored->user_id), f->user_id, sizeof f->user_id)))
        return e;
    return tx_commit(tx, NULL, 0);
}

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
            e = lock_and_read(&f, tx, &who);
        if (!e && !who.refusal)
            e = delete_orphan(&f, tx, &who);
        candidate_unlocked(&f);
    }
    *ret_refusal = who.refusal;
    return e;
}
