/* Parts of the load generator: requests, and statistics of the replies. */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The bytes of a request. Each run of '#' is replaced by a number of as many digits whenever it is sent. */
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

/* False if the parts do not fit. */
bool message_write(struct message *m, const struct message_parts *parts);
void message_number(struct message *m, uint64_t number);

/* The head of a reply. */
struct head {
    int status;
    size_t body_len;
    bool last; /* the server closes the connection after this reply */
};

/* 1 if the head is complete (*ret_len bytes), 0 if it is not, -1 if it is not an HTTP response. */
int head_read(const char *bytes, size_t len, struct head *ret, size_t *ret_len);

/* A histogram of times in microseconds, exact to 1/128. */
#define TIME_SLOTS ((size_t)128 * 40)
struct tally {
    uint64_t answers, broken, reopened, refused;
    uint64_t statuses[600];
    uint64_t times[TIME_SLOTS];
    double waiting_area; /* connections waiting for a reply, times seconds */
    int waiting_least;
};

void tally_answer(struct tally *t, int status, int64_t ns);
void tally_print(const struct tally *t, double seconds, FILE *out);

#endif
