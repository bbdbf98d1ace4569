/* The load generator's parts: what is sent, and what came of it. */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A request's bytes. Each run of '#' becomes a number of that many digits whenever it is sent, so that its length stays. */
#define HOLES_MAX 8
struct message {
    char bytes[16384];
    size_t len;
    struct hole {
        size_t at, digits;
    } holes[HOLES_MAX];
    size_t hole_count;
};

struct message_parts {
    const char *method, *host, *path;
    const char *headers[16];
    size_t header_count;
    const char *body; /* NULL: none */
};

/* False when the parts do not fit. */
bool message_write(struct message *m, const struct message_parts *parts);
void message_number(struct message *m, uint64_t number);

/* An answer's head. */
struct head {
    int status;
    size_t body_len;
    bool last; /* the connection ends with this answer */
};

/* 1 when the head is whole (*ret_len long), 0 when more must come, -1 when it is no answer. */
int head_read(const char *bytes, size_t len, struct head *ret, size_t *ret_len);

/* Times by microseconds, exact to one part in 128. */
#define TIME_SLOTS ((size_t)128 * 40)
struct tally {
    uint64_t answers, broken, reopened, refused;
    uint64_t statuses[600];
    uint64_t times[TIME_SLOTS];
    double waiting_area; /* connections that wait for an answer, times seconds */
    int waiting_least;
};

void tally_answer(struct tally *t, int status, int64_t ns);
void tally_print(const struct tally *t, double seconds, FILE *out);

#endif
