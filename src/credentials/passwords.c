#include "credentials/passwords.h"

#include <crypt.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"

#define BCRYPT_LEN 60
#define BCRYPT_PASSWORD_MAX 72

/* Hash of an unknown random password, at the cost that Supabase Auth uses. */
static const char decoy[] = "$2a$10$ndOLcwbmqnK2cd/ITXyx4uA.p6oB3bEPhPKq.qkXjTP2XxOOl5pD6";

/* "$2a$10$" and 53 characters. */
static bool is_usable(struct str hash)
{
    static const char alphabet[] = "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    int64_t cost;
    if (hash.len != BCRYPT_LEN || !str_starts(hash, STR("$2")) || !memchr("aby", hash.at[2], 3) || hash.at[3] != '$' ||
        hash.at[6] != '$' || str_to_i64((struct str){hash.at + 4, 2}, 4, PASSWORD_COST_MAX, &cost))
        return false;
    for (size_t i = 7; i < hash.len; i++)
        if (!memchr(alphabet, hash.at[i], sizeof alphabet - 1))
            return false;
    return true;
}

static enum err compare(const char *password, const char *hash, bool *ret_same)
{
    struct crypt_data *buffer = calloc(1, sizeof *buffer); /* 32 KiB: too much for a thread's stack */
    if (!buffer)
        return ERR_MEMORY;
    const char *computed = crypt_rn(password, hash, buffer, sizeof *buffer);
    bool valid = computed && strlen(computed) == BCRYPT_LEN;
    if (valid)
        *ret_same = sodium_memcmp(computed, hash, BCRYPT_LEN) == 0;
    secret_wipe(buffer, sizeof *buffer);
    free(buffer);
    return valid ? OK : ERR_SYSTEM;
}

enum err password_check(struct str password, struct str hash, bool *ret_matches)
{
    bool usable = hash.at && is_usable(hash);
    bool acceptable = password.at && password.len > 0 && !memchr(password.at, '\0', password.len);
    char truncated[BCRYPT_PASSWORD_MAX + 1] = "", stored[BCRYPT_LEN + 1];
    if (acceptable)
        memcpy(truncated, password.at, password.len < BCRYPT_PASSWORD_MAX ? password.len : BCRYPT_PASSWORD_MAX);
    memcpy(stored, usable ? hash.at : decoy, BCRYPT_LEN);
    stored[BCRYPT_LEN] = '\0';

    bool same = false;
    enum err e = compare(truncated, stored, &same);
    secret_wipe(truncated, sizeof truncated);
    if (!e)
        *ret_matches = same && usable && acceptable;
    return e;
}
