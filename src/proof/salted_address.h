/* The hash by which a certificate names an address: it can be checked by whoever has the salt, and guessed by nobody. */
#ifndef PROOF_SALTED_ADDRESS_H
#define PROOF_SALTED_ADDRESS_H

#include "base/digest.h"

#define SALT_LEN 16
#define SALTED_ADDRESS_MAX 320 /* longer addresses are cut: no mail goes there */

/* SHA-256 of the salt and the address in lower case. */
struct digest salted_address(const uint8_t salt[SALT_LEN], struct str address);

#endif
