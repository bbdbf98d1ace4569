/* Private to src/http: how many connections each client network has open, in all loops. */
#ifndef HTTP_NETWORKS_H
#define HTTP_NETWORKS_H

#include "base/ip.h"

struct networks;

/* For at most this many networks at a time; NULL when out of memory. */
struct networks *networks_new(size_t most) MUST_CHECK;
void networks_free(struct networks *n);

/* From any thread; the address is that of a client, its network counts. */
int networks_count(struct networks *n, const struct ip *client);
bool networks_add(struct networks *n, const struct ip *client); /* false when the table is full; nothing is counted */
void networks_remove(struct networks *n, const struct ip *client);

#endif
