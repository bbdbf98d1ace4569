#include "credentials/passwords.h"

#include <crypt.h>
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"

#define BCRYPT_LEN 60
#define BCRYPT_BEGINNING 7 /* "$2a$10$" */
#define BCRYPT_PASSWORD_MAX 72

/* Salt and hash of an unknown random password. Behind another cost they are the hash of no known password. */
#define BCRYPT_DECOY "ndOLcwbmqnK2cd/ITXyx4uA.p6oB3bEPhPKq.qkXjTP2XxOOl5pD6"
#define ARGON2_DECOY "6bB0l7u2dG1u4oJk3QJt7w$Zk8m0y5l3b9yq2y4cUu8m1o6K3n5s7v9x1z3B5D7F9E"

const struct password_decoy password_decoy_usual = {"$2a$10$" BCRYPT_DECOY};

enum hash_kind { HASH_UNSUPPORTED, HASH_BCRYPT, HASH_ARGON2 };

static bool consists_of(struct str text, const char *alphabet)
{
    for (size_t i = 0; i < text.len; i++)
        if (!text.at[i] || !strchr(alphabet, text.at[i]))
            return false;
    return true;
}

#define LETTERS_AND_DIGITS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

/* "$2a$10$" and 53 characters. */
static bool is_bcrypt(struct str hash)
{
    int64_t cost;
    return hash.len == BCRYPT_LEN && str_starts(hash, STR("$2")) && memchr("aby", hash.at[2], 3) && hash.at[3] == '$' &&
           hash.at[6] == '$' && str_to_i64((struct str){hash.at + 4, 2}, 4, PASSWORD_COST_MAX, &cost) == OK &&
           consists_of((struct str){hash.at + BCRYPT_BEGINNING, BCRYPT_LEN - BCRYPT_BEGINNING},
                       "./" LETTERS_AND_DIGITS);
}

/* Cuts `before` and a number up to `end` off the text. */
static bool cut_number(struct str *text, struct str before, char end, int64_t max)
{
    struct str digits;
    int64_t ignored;
    if (!str_starts(*text, before))
        return false;
    *text = (struct str){text->at + before.len, text->len - before.len};
    return str_split(text, end, &digits) && str_to_i64(digits, 1, max, &ignored) == OK;
}

/* "$argon2id$v=19$m=65536,t=2,p=1$", a salt, "$" and the hash. */
static bool is_argon2(struct str hash)
{
    struct str rest = hash, none, kind, version, salt;
    if (hash.len > PASSWORD_HASH_MAX || !str_split(&rest, '$', &none) || none.len || !str_split(&rest, '$', &kind) ||
        !(str_eq(kind, STR("argon2id")) || str_eq(kind, STR("argon2i"))) || !str_split(&rest, '$', &version) ||
        !str_eq(version, STR("v=19")))
        return false;
    return cut_number(&rest, STR("m="), ',', PASSWORD_ARGON2_KIB_MAX) &&
           cut_number(&rest, STR("t="), ',', PASSWORD_ARGON2_PASSES_MAX) &&
           cut_number(&rest, STR("p="), '$', PASSWORD_ARGON2_LANES_MAX) && str_split(&rest, '$', &salt) &&
           salt.len > 0 && rest.len > 0 && consists_of(salt, "+/" LETTERS_AND_DIGITS) &&
           consists_of(rest, "+/" LETTERS_AND_DIGITS);
}

static enum hash_kind kind_of(struct str hash)
{
    if (!hash.at)
        return HASH_UNSUPPORTED;
    return is_bcrypt(hash) ? HASH_BCRYPT : is_argon2(hash) ? HASH_ARGON2 : HASH_UNSUPPORTED;
}

enum err password_decoy_like(struct str beginning, struct password_decoy *ret)
{
    struct password_decoy decoy;
    const char *rest = str_starts(beginning, STR("$2")) ? BCRYPT_DECOY : ARGON2_DECOY;
    int len = snprintf(decoy.hash, sizeof decoy.hash, "%.*s%s", STR_ARGS(beginning), rest);
    if (len < 0 || (size_t)len >= sizeof decoy.hash || kind_of(str_of(decoy.hash)) == HASH_UNSUPPORTED)
        return ERR_INPUT;
    *ret = decoy;
    return OK;
}

static enum err compare_bcrypt(struct str password, const char *hash, bool *ret_same)
{
    char truncated[BCRYPT_PASSWORD_MAX + 1] = "";
    struct crypt_data *buffer = calloc(1, sizeof *buffer); /* 32 KiB: too much for a thread's stack */
    if (!buffer)
        return ERR_MEMORY;
    if (password.len)
        memcpy(truncated, password.at, password.len < BCRYPT_PASSWORD_MAX ? password.len : BCRYPT_PASSWORD_MAX);
    const char *computed = crypt_rn(truncated, hash, buffer, sizeof *buffer);
    bool valid = computed && strlen(computed) == BCRYPT_LEN;
    if (valid)
        *ret_same = sodium_memcmp(computed, hash, BCRYPT_LEN) == 0;
    secret_wipe(truncated, sizeof truncated);
    secret_wipe(buffer, sizeof *buffer);
    free(buffer);
    return valid ? OK : ERR_SYSTEM;
}

static enum err compare_argon2(struct str password, const char *hash, bool *ret_same)
{
    errno = 0;
    bool same = crypto_pwhash_str_verify(hash, password.len ? password.at : "", password.len) == 0;
    if (!same && errno == ENOMEM)
        return ERR_MEMORY;
    *ret_same = same;
    return OK;
}

enum err password_check(struct str password, struct str hash, const struct password_decoy *decoy,
                        struct password_verdict *ret)
{
    enum hash_kind kind = kind_of(hash);
    bool usable = kind != HASH_UNSUPPORTED;
    bool acceptable = password.at && password.len > 0 && !memchr(password.at, '\0', password.len);
    struct str compared = usable ? hash : str_of(decoy->hash);
    char stored[PASSWORD_HASH_MAX + 1];
    bool same = false;
    enum err e = str_copy(compared, stored, sizeof stored);
    if (e)
        return e;
    if (!acceptable)
        password = STR("");
    e = kind_of(compared) == HASH_ARGON2 ? compare_argon2(password, stored, &same)
                                         : compare_bcrypt(password, stored, &same);
    if (!e)
        *ret = (struct password_verdict){.matches = same && usable && acceptable,
                                         .unsupported = !usable && hash.at && hash.len > 0};
    return e;
}
