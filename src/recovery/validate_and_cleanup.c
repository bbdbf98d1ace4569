/* Step 2: with the right code, deletes the orphan in one transaction, or not at all.
 *
 * The code is checked first, in a transaction of its own that touches none of the product's tables: a caller who guesses
 * codes never waits for a row or a table that another program holds. */
#include <string.h>

#include "pg/arrays.h"
#include "pg/tx.h"
#include "recovery/flow.h"
#include "recovery/statements.h"

static enum err prove(struct flow *f, struct pg *pg, int *ret_refusal);

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
    if ((e = orphan_lock_and_read(f, tx, &who)) || (!who.refusal && (e = orphan_delete(f, tx, &who))))
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
enum err orphan_lock_and_read(struct flow *f, struct tx *tx, struct candidate *ret)
{
    const struct orphan_statements *orphans = f->context->orphans;
    AUTO(buf) struct buf address = buf_new(4096);
    array_add_text(&address, f->email);
    if (!array_end(&address))
        return ERR_MEMORY;
    struct pg_call reads[7] = {
        {.ask = &cleanup_await_lock, .args = {pg_text(f->email.at)}},
        {.ask = &cleanup_find_code, .args = {pg_text(f->subject.email_hash), pg_i64(f->stored.log_id)}},
        {.ask = &cleanup_lock_user, .args = {pg_text(f->stored.user_id)}},
    };
    size_t count = 3;
    if (orphans->lock_tables.sql)
        reads[count++] = (struct pg_call){.ask = &orphans->lock_tables};
    if (orphans->lock_rows.sql)
        reads[count++] = (struct pg_call){.ask = &orphans->lock_rows, .args = {pg_text(f->stored.user_id)}};
    reads[count++] = (struct pg_call){.ask = &orphans->candidates, .args = {pg_text(address.at)}};
    const struct pg_call *code = &reads[1], *locked = &reads[2], *found = &reads[count - 1];
    bool asks_keys = candidate_asks_keys(f->context);
    if (asks_keys)
        reads[count++] = candidate_find_keys(f->context, address.at);

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
    if ((e = candidate_read(found, 0, ret)))
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

enum err orphan_delete(struct flow *f, struct tx *tx, struct candidate *who)
{
    const struct stored_code *stored = &f->stored;
    f->classification = who->verified ? "case_1_2" : "case_1_1";
    struct pg_call writes[] = {
        {.ask = &cleanup_delete_user, .args = {pg_text(stored->user_id)}},
        {.ask = &cleanup_drop_code, .args = {pg_text(f->subject.email_hash), pg_i64(stored->log_id)}},
        audit_completed(&f->subject, stored->log_id, stored->created_at, f->classification),
        {.ask = &cleanup_tell_gates, .args = {pg_text(stored->user_id)}},
        {.ask = &cleanup_check_keys},
    };
    size_t count = COUNT_OF(writes) - !atomic_load(&f->context->keys.any);
    enum err e = tx_trip(tx, writes, count);
    if (candidate_lock_denied(writes, count)) {
        who->refusal = CLEANUP_BUSY;
        return OK;
    }
    if (e && (candidate_key_violated(&writes[0]) || candidate_key_violated(&writes[4]))) {
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
