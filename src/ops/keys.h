/* Every key of a running server, each derived from the one master key for its own purpose. */
#ifndef OPS_KEYS_H
#define OPS_KEYS_H

#include "ops/settings.h"
#include "recovery/codes.h"

struct keys {
    struct digest fingerprint; /* what the database remembers the master key by */
    struct digest identifiers; /* hashes addresses and clients */
    struct digest access_keys; /* hashes API keys */
    struct digest farewells;   /* seals the address of a last mail */
    struct digest tokens;      /* signs Reclaim's own tokens */
    struct code_keys codes;
};

enum err keys_read(const struct settings *s, struct keys *ret, struct why *why) MUST_CHECK;

#endif
