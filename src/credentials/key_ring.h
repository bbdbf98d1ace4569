/* The keys in force for tokens. They are replaced as a whole while requests use them: a set is freed with its last user.
 * Any thread may use it. */
#ifndef CREDENTIALS_KEY_RING_H
#define CREDENTIALS_KEY_RING_H

#include "credentials/jwt.h"

struct key_ring;

struct key_ring *key_ring_new(void) MUST_CHECK;
void key_ring_free(struct key_ring *ring); /* once everything taken was given back; NULL is fine */

void key_ring_put(struct key_ring *ring, struct jwt_keys *keys); /* takes them over */
/* NULL while none were put. */
const struct jwt_keys *key_ring_take(struct key_ring *ring) MUST_CHECK;
void key_ring_give(struct key_ring *ring, const struct jwt_keys *keys); /* what was taken; NULL is fine */

#endif
