/* Randomness from the kernel, through libsodium. */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

void random_bytes(void *into, size_t len);
uint32_t random_below(uint32_t bound); /* without modulo bias; bound > 0 */
double random_unit(void);              /* [0, 1) */
/* Gaussian with mean 0, drawn again until within cut·sigma of it; sigma 0 or cut 0 gives 0. */
double random_gauss(double sigma, double cut);
void random_uuid(char into[37]); /* version 4, lower case */

#endif
