/* Randomness from the kernel, through libsodium. */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

void random_bytes(void *into, size_t len);
uint32_t random_below(uint32_t bound); /* without modulo bias; bound > 0 */
double random_unit(void);              /* [0, 1) */
/* Gaussian with mean 0, redrawn until within cut·sigma of it; 0 when sigma or cut is 0. */
double random_gauss(double sigma, double cut);
void random_uuid(char into[37]); /* version 4, lower case */

#endif
