/* URL-safe base64 without padding, as tokens and keys are written. Private to src/credentials. */
#ifndef CREDENTIALS_BASE64URL_H
#define CREDENTIALS_BASE64URL_H

#include "base/str.h"

/* Accepts the canonical form only. ERR_INPUT otherwise, or if it does not fit. */
enum err base64url_read(struct str text, unsigned char *into, size_t size, size_t *ret_len) MUST_CHECK;

#endif
