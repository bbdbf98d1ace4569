#include "proof/salted_address.h"

#include <string.h>

struct digest salted_address(const uint8_t salt[SALT_LEN], struct str address)
{
    char lower[SALTED_ADDRESS_MAX];
    size_t len = address.len < sizeof lower ? address.len : sizeof lower;
    memcpy(lower, address.at, len);
    str_lower(lower, len);
    const struct str parts[] = {{(const char *)salt, SALT_LEN}, {lower, len}};
    return digest_sha256_parts(parts, COUNT_OF(parts));
}
