#include "credentials/codes.h"

#include <string.h>

#include "base/random.h"

enum err code_keys_derive(struct str master, enum code_purpose purpose, struct code_keys *ret)
{
    static const struct {
        const char *derive, *hash; /* for digest_derive; released: changing one makes mailed codes worthless */
    } names[] = {
        [CODE_FOR_CLEANUP] = {"code", "code hash"},
        [CODE_FOR_SIGN_IN] = {"sign-in code", "sign-in code hash"},
    };
    enum err e = digest_derive(master, names[purpose].derive, &ret->derive);
    return e ? e : digest_derive(master, names[purpose].hash, &ret->hash);
}

/* Ten of a million codes, or a hundred of 2^40. */
int code_tries_max(const struct code_shape *shape)
{
    return strlen(shape->alphabet) <= 10 ? 10 : 100;
}

struct code_salt code_salt_new(void)
{
    struct code_salt salt = {{0}};
    random_bytes(salt.bytes, sizeof salt.bytes);
    return salt;
}

void code_salt_hex(const struct code_salt *salt, char into[2 * CODE_SALT_LEN + 1])
{
    hex_write(salt->bytes, sizeof salt->bytes, into);
}

enum err code_salt_parse(struct str hex, struct code_salt *ret)
{
    return hex_read(hex, ret->bytes, sizeof ret->bytes);
}

/* HMAC of the salt, the text and the round. */
static struct digest salted(const struct digest *key, const struct code_salt *salt, const char *text, uint8_t round)
{
    char bytes[CODE_SALT_LEN + 64 + 1];
    size_t len = strnlen(text, 64);
    memcpy(bytes, salt->bytes, CODE_SALT_LEN);
    memcpy(bytes + CODE_SALT_LEN, text, len);
    bytes[CODE_SALT_LEN + len] = (char)round;
    struct digest d = digest_hmac(key, (struct str){bytes, CODE_SALT_LEN + len + 1});
    secret_wipe(bytes, sizeof bytes);
    return d;
}

struct code code_derive(const struct code_keys *keys, const struct code_shape *shape, const struct code_salt *salt,
                        const char *user_id)
{
    struct code code = {""};
    size_t symbols = strlen(shape->alphabet);
    /* The largest multiple of the alphabet's size that a byte can hold: bytes beyond it would favour some symbols. */
    size_t fair = 256 - 256 % symbols;
    int written = 0;
    for (uint8_t round = 0; written < shape->symbols; round++) {
        struct digest stream = salted(&keys->derive, salt, user_id, round);
        for (size_t i = 0; i < DIGEST_LEN && written < shape->symbols; i++)
            if (stream.bytes[i] < fair)
                code.symbols[written++] = shape->alphabet[stream.bytes[i] % symbols];
        secret_wipe(&stream, sizeof stream);
    }
    return code;
}

struct digest code_hash(const struct code_keys *keys, const struct code_salt *salt, const struct code *code)
{
    return salted(&keys->hash, salt, code->symbols, 0);
}

void code_show(const struct code_shape *shape, const struct code *code, char into[CODE_TEXT_MAX])
{
    size_t at = 0;
    for (int i = 0; i < shape->symbols; i++) {
        if (shape->group && i && i % shape->group == 0)
            into[at++] = '-';
        into[at++] = code->symbols[i];
    }
    into[at] = '\0';
}

enum err code_read(const struct code_shape *shape, struct str typed, struct code *ret)
{
    struct code code = {""};
    int written = 0;
    typed = str_trim(typed);
    for (size_t i = 0; i < typed.len; i++) {
        char c = typed.at[i];
        if (shape->group && (c == ' ' || c == '-'))
            continue;
        if (c >= 'a' && c <= 'z')
            c = (char)(c - 'a' + 'A');
        if (c == '\0' || written == shape->symbols ||
            (!strchr(shape->alphabet, c) && !strchr(shape->also_well_formed, c)))
            return ERR_INPUT;
        code.symbols[written++] = c;
    }
    if (written != shape->symbols)
        return ERR_INPUT;
    *ret = code;
    return OK;
}
