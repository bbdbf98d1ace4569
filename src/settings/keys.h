/* The keys of a running server, each derived from the master key for one purpose. */
#ifndef SETTINGS_KEYS_H
#define SETTINGS_KEYS_H

#include "credentials/codes.h"
#include "proof/proof_key.h"
#include "settings/settings.h"

#define FINGERPRINT_PURPOSE                                                                                            \
    "fingerprint" /* for digest_derive: the fingerprint of the master key that the database keeps */

struct server_keys {
    struct digest fingerprint; /* kept in the database, to recognise another master key */
    struct digest identifiers; /* hashes addresses and clients */
    struct digest access_keys; /* hashes API keys */
    struct digest last_mails;  /* seals the address of a last mail */
    struct digest cooldowns;   /* hashes addresses of deleted customers */
    struct digest pages;       /* seals cookies of pages */
    struct digest tokens;      /* signs Reclaim's own tokens */
    struct code_keys codes, sign_in_codes;
    struct proof_keys proofs; /* sign certificates and heads of the sealed log */
};

enum err keys_read(const struct settings *s, struct server_keys *ret, struct why *why) MUST_CHECK;

#endif
