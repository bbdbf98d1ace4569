#include "console/rates.h"

#include <assert.h>

void rates_init(struct rates *r)
{
    pthread_mutex_init(&r->lock, NULL);
}

void rates_sample(struct rates *r, unsigned long long total)
{
    pthread_mutex_lock(&r->lock);
    unsigned long long since = total - r->total;
    r->samples[r->next] = since > UINT32_MAX ? UINT32_MAX : (uint32_t)since;
    r->next = (r->next + 1) % RATES_SAMPLES;
    r->total = total;
    pthread_mutex_unlock(&r->lock);
}

uint64_t rates_sum(struct rates *r, size_t samples)
{
    uint64_t sum = 0;
    pthread_mutex_lock(&r->lock);
    for (size_t i = 1; i <= samples; i++)
        sum += r->samples[(r->next + RATES_SAMPLES - i) % RATES_SAMPLES];
    pthread_mutex_unlock(&r->lock);
    return sum;
}

void rates_write(struct rates *r, size_t count, size_t samples_each, struct json_writer *w)
{
    assert(samples_each > 0 && count * samples_each <= RATES_SAMPLES);
    json_open(w, '{');
    json_key(w, "step_seconds");
    json_i64(w, (int64_t)(samples_each * RATES_SAMPLE_S));
    json_key(w, "per_second");
    json_open(w, '[');
    pthread_mutex_lock(&r->lock);
    size_t at = (r->next + RATES_SAMPLES - count * samples_each) % RATES_SAMPLES;
    for (size_t i = 0; i < count; i++) {
        uint64_t sum = 0;
        for (size_t n = 0; n < samples_each; n++, at = (at + 1) % RATES_SAMPLES)
            sum += r->samples[at];
        json_double(w, (double)(int64_t)(100 * sum / (samples_each * RATES_SAMPLE_S)) / 100);
    }
    pthread_mutex_unlock(&r->lock);
    json_close(w, ']');
    json_close(w, '}');
}
