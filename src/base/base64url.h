/* URL-safe base64 without padding, as tokens and keys are written. */
#ifndef BASE_BASE64URL_H
#define BASE_BASE64URL_H

#include "base/buf.h"

/* Accepts the canonical form only. ERR_INPUT otherwise, or if it does not fit. */
enum err base64url_read(struct str text, unsigned char *into, size_t size, size_t *ret_len) MUST_CHECK;
void base64url_add(struct buf *out, struct str bytes); /* absent bytes are a failure of `out` */

#endif
