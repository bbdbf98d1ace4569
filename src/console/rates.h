/* How many requests this instance answered, or refused: a sample every ten seconds, those of the last day. */
#ifndef CONSOLE_RATES_H
#define CONSOLE_RATES_H

#include <pthread.h>
#include <stdint.h>

#include "base/json.h"

#define RATES_SAMPLE_S 10
#define RATES_SAMPLES (24 * 3600 / RATES_SAMPLE_S)

struct rates {
    pthread_mutex_t lock;
    uint32_t samples[RATES_SAMPLES]; /* since the sample before */
    size_t next;                     /* where the next one goes: the oldest is there */
    unsigned long long total;        /* at the last one */
};

void rates_init(struct rates *r);
void rates_sample(struct rates *r, unsigned long long total);
/* The sum of so many samples, the newest. */
uint64_t rates_sum(struct rates *r, size_t samples);
/* {"step_seconds":…,"per_second":[…]}: `count` numbers, each the mean of so many samples, the oldest first. */
void rates_write(struct rates *r, size_t count, size_t samples_each, struct json_writer *w);

#endif
