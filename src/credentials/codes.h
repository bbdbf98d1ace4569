/* Codes that prove a mailbox. A code is derived from a random salt, the user and a key that the database does not have: it is
 * stored nowhere, and any instance can send the same one again after a crash. Each purpose has keys of its own, so that a
 * code for one never proves another. */
#ifndef CREDENTIALS_CODES_H
#define CREDENTIALS_CODES_H

#include "base/digest.h"

#define CODE_SALT_LEN 16
#define CODE_TEXT_MAX 16

/* The form of a contract's codes. */
struct code_shape {
    int symbols;
    const char *alphabet; /* 32 symbols, or 10 */
    int group;            /* a hyphen after so many symbols when shown; 0: none */
    /* Characters outside the alphabet that count as well-formed; such a code is never right. */
    const char *also_well_formed;
};

/* Eight symbols, mailed as "ABCD-EFGH"; without letters and digits that look alike. */
#define CODE_SHAPE_LETTERS                                                                                             \
    {                                                                                                                  \
        .symbols = 8, .alphabet = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789", .group = 4, .also_well_formed = "IO"             \
    }

/* Wrong tries count in the code's row before it is compared: `tries` of all, and network_tries, an object of the client
 * networks' hashes and their counts. These are expressions on it; the parameter is a network's hash. */
#define CODE_NETWORK_TRIES(param) "coalesce((network_tries->>" param "::text)::int4, 0)"
#define CODE_NETWORK_TRIES_PLUS(param)                                                                                 \
    "network_tries || jsonb_build_object(" param "::text, " CODE_NETWORK_TRIES(param) " + 1)"
#define CODE_NETWORK_TRIES_MAX "3"

enum code_purpose {
    CODE_FOR_CLEANUP, /* deletes an unfinished registration */
    CODE_FOR_SIGN_IN,
};

struct code_keys { /* of one purpose */
    struct digest derive, hash;
};

struct code_salt {
    uint8_t bytes[CODE_SALT_LEN];
};

struct code {
    char symbols[CODE_TEXT_MAX]; /* without the hyphen; a C string */
};

enum err code_keys_derive(struct str master, enum code_purpose purpose, struct code_keys *ret) MUST_CHECK;

/* How many tries a code has from all networks together. */
int code_tries_max(const struct code_shape *shape);

struct code_salt code_salt_new(void);
void code_salt_hex(const struct code_salt *salt, char into[2 * CODE_SALT_LEN + 1]);
enum err code_salt_parse(struct str hex, struct code_salt *ret) MUST_CHECK;
/* Without modulo bias. The caller wipes it. */
struct code code_derive(const struct code_keys *keys, const struct code_shape *shape, const struct code_salt *salt,
                        const char *user_id);
/* What the database stores of a code. */
struct digest code_hash(const struct code_keys *keys, const struct code_salt *salt, const struct code *code);
/* "ABCD-EFGH", as it is mailed. */
void code_show(const struct code_shape *shape, const struct code *code, char into[CODE_TEXT_MAX]);
/* Reads a code as typed: case, spaces and hyphens are ignored where the shape has letters. ERR_INPUT: not a code. */
enum err code_read(const struct code_shape *shape, struct str typed, struct code *ret) MUST_CHECK;

#endif
