/* Every key of a running server, each derived from the one master key for its own purpose. */
#ifndef SETTINGS_KEYS_H
#define SETTINGS_KEYS_H

#include "recovery/codes.h"
#include "settings/settings.h"

#define FINGERPRINT_PURPOSE "fingerprint" /* for digest_derive: what the database keeps of the master key */

struct server_keys {
    struct digest fingerprint; /* what the database remembers the master key by */
    struct digest identifiers; /* hashes addresses and clients */
    struct digest access_keys; /* hashes API keys */
    struct digest last_mails;  /* seals the address of a last mail */
    struct digest tokens;      /* signs Reclaim's own tokens */
    struct code_keys codes;
};

enum err keys_read(const struct settings *s, struct server_keys *ret, struct why *why) MUST_CHECK;

#endif
