#include "customers/last_mail.h"

#include <string.h>

#include "base/log.h"
#include "base/random.h"
#include "base/seal.h"
#include "proof/salted_address.h"

/* Sealed are a byte that no address begins with, the secret and the address. */
#define MARK '\1'
#define HEAD_LEN (1 + LAST_MAIL_SECRET_LEN)
#define BOX_MAX (SEAL_EXTRA + HEAD_LEN + MAIL_ADDRESS_MAX)

_Static_assert(LAST_MAIL_SECRET_LEN == SALT_LEN, "the secret is the salt");
_Static_assert(LAST_MAIL_SEALED_MAX == 2 * BOX_MAX + 2 * (1 + DIGEST_HEX_LEN) + 1, "what is sealed fits");

const struct statement last_mail_prune_dead = {
    .name = "last_mail_prune_dead",
    .sql = "DELETE FROM reclaim.work_items WHERE state = 'dead' AND kind = 'mail' AND payload ? 'sealed'",
    .params = 0,
    .columns = "",
};

/* The link's secret does not give away the salt: links end up in logs of proxies. */
static void link_of(const uint8_t secret[LAST_MAIL_SECRET_LEN], char ret[2 * LAST_MAIL_SECRET_LEN + 1])
{
    const struct str parts[] = {STR("link"), {(const char *)secret, LAST_MAIL_SECRET_LEN}};
    struct digest link = digest_sha256_parts(parts, COUNT_OF(parts));
    hex_write(link.bytes, LAST_MAIL_SECRET_LEN, ret);
}

enum err last_mail_seal(const struct digest *key, const char *customer_id, struct str address,
                        char ret[LAST_MAIL_SEALED_MAX])
{
    uint8_t box[BOX_MAX], content[HEAD_LEN + MAIL_ADDRESS_MAX] = {MARK};
    char link[2 * LAST_MAIL_SECRET_LEN + 1];
    if (address.len == 0 || address.len > MAIL_ADDRESS_MAX)
        return ERR_INPUT;
    random_bytes(content + 1, LAST_MAIL_SECRET_LEN);
    memcpy(content + HEAD_LEN, address.at, address.len);
    seal(key, (struct str){customer_id, 36}, (struct str){(const char *)content, HEAD_LEN + address.len}, box);

    struct digest of_address = salted_address(content + 1, address);
    link_of(content + 1, link);
    struct digest of_link = digest_sha256(str_of(link));
    size_t len = 2 * (SEAL_EXTRA + HEAD_LEN + address.len);
    hex_write(box, len / 2, ret);
    ret[len] = ':';
    digest_hex(&of_address, ret + len + 1);
    ret[len + 1 + DIGEST_HEX_LEN] = ':';
    digest_hex(&of_link, ret + len + 2 + DIGEST_HEX_LEN);
    secret_wipe(content, sizeof content);
    return OK;
}

enum err last_mail_open(const struct digest *key, struct str customer_id, struct str sealed, struct last_mail *ret)
{
    uint8_t box[BOX_MAX], content[BOX_MAX];
    struct str hex = {NULL, 0};
    size_t len = str_split(&sealed, ':', &hex) ? hex.len / 2 : 0;
    if (customer_id.len != 36 || len <= SEAL_EXTRA || len > sizeof box || hex_read(hex, box, len) ||
        seal_open(key, customer_id, (struct str){(const char *)box, len}, content))
        return ERR_INPUT;
    len -= SEAL_EXTRA;
    *ret = (struct last_mail){0};
    size_t head = content[0] == MARK && len > HEAD_LEN ? HEAD_LEN : 0;
    if (head) {
        hex_write(content + 1, LAST_MAIL_SECRET_LEN, ret->salt);
        link_of(content + 1, ret->link);
    }
    enum err e = str_copy((struct str){(const char *)content + head, len - head}, ret->to, sizeof ret->to);
    secret_wipe(content, sizeof content);
    return e ? ERR_INPUT : OK;
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
