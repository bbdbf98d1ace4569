/* Step 2: whoever has the code deletes the orphan, in one transaction, or not at all. */
#include <string.h>

#include "pg/tx.h"
#include "recovery/cleanup.h"
#include "recovery/statements.h"

/* The code as it was stored. */
struct stored {
    struct digest hash;
    struct code_salt salt;
    char user_id[37];
    int64_t log_id;
};

static enum err read_stored(const struct pg_call *taken, struct stored *ret)
{
    enum err e = digest_parse(pg_get(taken, 0, 0), &ret->hash);
    if (e || (e = code_salt_parse(pg_get(taken, 0, 1), &ret->salt)))
        return e;
    ret->log_id = pg_get_i64(taken, 0, 3);
    return str_copy(pg_get(taken, 0, 2), ret->user_id, sizeof ret->user_id);
}

static bool is_right(const struct flow *f, const struct stored *stored)
{
    struct digest typed = code_hash(f->room->code_keys, &stored->salt, &f->code);
    return digest_eq(&typed, &stored->hash);
}

/* Takes one of the code's three tries, whatever comes of it; then the user and what the user owns, both held still. */
static enum err take_try_and_read(struct flow *f, struct tx *tx, struct stored *stored, struct candidate *ret)
{
    const struct orphan_statements *orphans = f->room->orphans;
    struct pg_call reads[4] = {
        {.ask = &cleanup_take_try, .args = {pg_text(f->who.email_hash)}},
        {.ask = &cleanup_find_user_and_lock, .args = {pg_text(f->email.at)}},
    };
    size_t count = 2;
    if (orphans->lock_tables.sql)
        reads[count++] = (struct pg_call){.ask = &orphans->lock_tables};
    reads[count++] = (struct pg_call){.ask = &orphans->has_company, .args = {pg_text(f->email.at)}};
    const struct pg_call *taken = &reads[0], *user = &reads[1], *company = &reads[count - 1];

    enum err e = tx_trip(tx, reads, count);
    if (e)
        return e;
    if (taken->rows == 0) {
        ret->refusal = (int)f->room->contract->expired;
        return OK;
    }
    if ((e = read_stored(taken, stored)))
        return e;
    if (!is_right(f, stored))
        ret->refusal = CLEANUP_WRONG_CODE;
    else if (user->rows == 0 || !str_eq(pg_get(user, 0, 0), str_of(stored->user_id)))
        ret->refusal = CLEANUP_UNKNOWN_USER; /* deleted, or another account has the address by now */
    else if (company->rows == 0 || pg_is_null(company, 0, 0))
        ret->refusal = CLEANUP_FAULT;
    else if (pg_get_bool(company, 0, 0))
        ret->refusal = CLEANUP_NOT_ORPHANED;
    ret->verified = user->rows > 0 && pg_get_bool(user, 0, 1);
    return OK;
}

enum err validate_and_cleanup(struct flow *f, struct pg *pg)
{
    struct stored stored = {.log_id = 0};
    struct candidate who = {.refusal = 0};
    struct pg_call lock = cleanup_try_lock(f);
    AUTO(tx) struct tx *tx = tx_begin(pg, f->job.deadline_ns);
    enum err e = tx_trip(tx, &lock, 1);
    if (e)
        return e;
    if (!cleanup_locked(f, &lock))
        who.refusal = CLEANUP_BUSY;
    else if ((e = take_try_and_read(f, tx, &stored, &who)))
        return e;
    if (who.refusal) {
        struct pg_call refused = audit_failed(&f->who, (enum cleanup_error)who.refusal);
        f->outcome = who.refusal;
        return tx_commit(tx, &refused, 1);
    }

    f->classification = who.verified ? "case_1_2" : "case_1_1";
    struct pg_call writes[] = {
        {.ask = &cleanup_delete_user, .args = {pg_text(stored.user_id)}},
        {.ask = &cleanup_drop_code, .args = {pg_text(f->who.email_hash), pg_i64(stored.log_id)}},
        audit_completed(stored.log_id, f->classification),
    };
    if ((e = tx_trip(tx, writes, COUNT_OF(writes))))
        return e;
    if (writes[0].rows != 1 || writes[2].rows != 1)
        return ERR_DATABASE; /* nothing is deleted that the log does not tell of */
    if ((e = str_copy(str_of(stored.user_id), f->user_id, sizeof f->user_id)) || (e = tx_commit(tx, NULL, 0)))
        return e;
    f->outcome = USER_DELETED;
    return OK;
}
