#include <inttypes.h>

#include "base/defs.h"
#include "load.h"

static size_t slot_of(uint64_t us)
{
    unsigned top = 63 - (unsigned)__builtin_clzll(us | 1);
    unsigned shift = top > 7 ? top - 7 : 0;
    size_t slot = (size_t)shift * 128 + (size_t)(us >> shift);
    return slot < TIME_SLOTS ? slot : TIME_SLOTS - 1;
}

/* The middle of the slot's range. */
static double slot_ms(size_t slot)
{
    size_t shift = slot < 256 ? 0 : slot / 128 - 1;
    double first = (double)((uint64_t)(slot - shift * 128) << shift);
    return (first + 0.5 * (double)(UINT64_C(1) << shift)) / 1000;
}

static double quantile_ms(const struct tally *t, double q)
{
    double wanted = q * (double)t->answers;
    uint64_t seen = 0;
    for (size_t i = 0; i < TIME_SLOTS; i++) {
        seen += t->times[i];
        if (seen && (double)seen >= wanted)
            return slot_ms(i);
    }
    return 0;
}

void tally_answer(struct tally *t, int status, int64_t ns)
{
    t->answers++;
    t->statuses[status]++;
    t->times[slot_of((uint64_t)(ns > 0 ? ns : 0) / 1000)]++;
}

void tally_print(const struct tally *t, double seconds, FILE *out)
{
    static const struct {
        const char *name;
        double q;
    } quantiles[] = {{"p1", 0.01},  {"p50", 0.5},    {"p90", 0.9}, {"p95", 0.95},
                     {"p99", 0.99}, {"p999", 0.999}, {"most", 1.0}};
    fprintf(out, "{\"seconds\":%.3f,\"answers\":%" PRIu64 ",\"per_second\":%.1f,", seconds, t->answers,
            (double)t->answers / seconds);
    fprintf(out, "\"broken\":%" PRIu64 ",\"reopened\":%" PRIu64 ",\"refused\":%" PRIu64 ",", t->broken, t->reopened,
            t->refused);
    fprintf(out, "\"waiting\":{\"least\":%d,\"mean\":%.1f},\"statuses\":{", t->waiting_least,
            t->waiting_area / seconds);
    const char *comma = "";
    for (int status = 0; status < 600; status++) {
        if (t->statuses[status]) {
            fprintf(out, "%s\"%d\":%" PRIu64, comma, status, t->statuses[status]);
            comma = ",";
        }
    }
    fputs("},\"ms\":{", out);
    for (size_t i = 0; i < COUNT_OF(quantiles); i++)
        fprintf(out, "%s\"%s\":%.3f", i ? "," : "", quantiles[i].name, quantile_ms(t, quantiles[i].q));
    fputs("}}\n", out);
}
