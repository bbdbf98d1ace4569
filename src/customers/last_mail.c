#include "customers/last_mail.h"

#include "base/log.h"
#include "base/seal.h"

#define BOX_MAX (SEAL_EXTRA + MAIL_ADDRESS_MAX)

_Static_assert(LAST_MAIL_SEALED_MAX == 2 * BOX_MAX + 1, "what is sealed fits");

const struct statement last_mail_prune_dead = {
    .name = "last_mail_prune_dead",
    .sql = "DELETE FROM reclaim.work_items WHERE state = 'dead' AND kind = 'mail' AND payload ? 'sealed'",
    .params = 0,
    .columns = "",
};

enum err last_mail_seal(const struct digest *key, const char *customer_id, struct str address,
                        char ret[LAST_MAIL_SEALED_MAX])
{
    uint8_t box[BOX_MAX];
    if (address.len == 0 || address.len > MAIL_ADDRESS_MAX)
        return ERR_INPUT;
    seal(key, (struct str){customer_id, 36}, address, box);
    hex_write(box, SEAL_EXTRA + address.len, ret);
    return OK;
}

enum err last_mail_open(const struct digest *key, struct str customer_id, struct str sealed,
                        char ret[MAIL_ADDRESS_MAX + 1])
{
    uint8_t box[BOX_MAX];
    size_t len = sealed.len / 2;
    if (customer_id.len != 36 || len <= SEAL_EXTRA || len > sizeof box || hex_read(sealed, box, len) ||
        seal_open(key, customer_id, (struct str){(const char *)box, len}, (uint8_t *)ret))
        return ERR_INPUT;
    ret[len - SEAL_EXTRA] = 0;
    return OK;
}

enum err last_mail_prune(void *context, struct pg *pg, int64_t deadline_ns)
{
    (void)context;
    struct pg_call call = {.ask = &last_mail_prune_dead};
    enum err e = pg_ask(pg, &call, deadline_ns);
    if (!e && call.rows > 0)
        log_warn("last mails that could not be delivered were dropped", F_INT("mails", call.rows));
    return e;
}
