#include "base/random.h"

#include <math.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

static void init_sodium(void)
{
    /* Without a secure source of randomness, codes and tokens could be guessed. */
    if (sodium_init() < 0)
        abort();
}

static void ensure_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, init_sodium);
}

void random_bytes(void *into, size_t len)
{
    ensure_init();
    randombytes_buf(into, len);
}

uint32_t random_below(uint32_t bound)
{
    ensure_init();
    return randombytes_uniform(bound);
}

static double unit(uint64_t bits)
{
    return (double)(bits >> 11) * 0x1p-53;
}

double random_unit(void)
{
    uint64_t bits;
    random_bytes(&bits, sizeof bits);
    return unit(bits);
}

double random_gauss(double sigma, double cut)
{
    if (!(sigma > 0) || !(cut > 0))
        return 0;

    for (;;) {
        uint64_t bits[2];
        random_bytes(bits, sizeof bits);
        /* Box-Muller transform; 1 - u because log(0) is not finite. */
        double z = sqrt(-2 * log(1 - unit(bits[0]))) * cos(2 * M_PI * unit(bits[1]));
        if (fabs(z) <= cut)
            return z * sigma;
    }
}

void random_uuid(char into[37])
{
    uint8_t b[16];
    random_bytes(b, sizeof b);
    b[6] = (uint8_t)((b[6] & 0x0F) | 0x40); /* version 4 */
    b[8] = (uint8_t)((b[8] & 0x3F) | 0x80); /* variant of RFC 9562 */
    (void)snprintf(into, 37, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2],
                   b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}
