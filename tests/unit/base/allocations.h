/* For tests linked with --wrap=malloc and --wrap=free: counts allocations, makes a chosen one fail and searches freed
 * memory for a secret. */
#ifndef TESTS_UNIT_BASE_ALLOCATIONS_H
#define TESTS_UNIT_BASE_ALLOCATIONS_H

#include <malloc.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static size_t allocations;      /* so far */
static size_t failing;          /* the number of the one that fails, counted from 1; 0 for none */
static const char *secret_text; /* when set, freed memory is searched for it */
static bool secret_freed;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void __real_free(void *at);
void __wrap_free(void *at);

void *__wrap_malloc(size_t size)
{
    /* AddressSanitizer aborts the program for sizes that malloc() only refuses. */
    if (++allocations == failing || size > (size_t)1 << 40)
        return NULL;
    return __real_malloc(size);
}

void __wrap_free(void *at)
{
    if (at && secret_text && memmem(at, malloc_usable_size(at), secret_text, strlen(secret_text)))
        secret_freed = true;
    __real_free(at);
}

static void fail_allocation(size_t number)
{
    allocations = 0;
    failing = number;
}

#endif
