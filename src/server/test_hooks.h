/* What tests and benchmarks need of the server and a release must not have. The build option test_hooks chooses between
 * test_hooks.c and no_test_hooks.c. */
#ifndef SERVER_TEST_HOOKS_H
#define SERVER_TEST_HOOKS_H

#include "server/routes.h"

/* RECLAIM_TEST_CONSTANT set: POST /functions/v1/constant, /constant-pass and GET /constant-page/BYTES give constant
 * answers. RECLAIM_TEST_ROUTES set:
 * GET /test/routes lists the routes and whom each admits. */
void test_hooks_add_routes(struct routes *r);
/* RECLAIM_TEST_REQUEST_DEADLINE_MS, else `otherwise_ns`. */
int64_t test_hooks_request_deadline_ns(int64_t otherwise_ns);
/* RECLAIM_TEST_KEY_SET_EVERY_MS and RECLAIM_TEST_KEY_SET_AGAIN_MS, else `otherwise_ns`. */
int64_t test_hooks_key_set_every_ns(int64_t otherwise_ns);
int64_t test_hooks_key_set_again_ns(int64_t otherwise_ns);
/* RECLAIM_TEST_COUNT_LOOPBACK set: loopback addresses are client networks like others. */
bool test_hooks_count_loopback(void);
/* RECLAIM_TEST_CLOCK_AHEAD_DAYS: by which the clocks of the process are ahead. */
void test_hooks_shift_clocks(void);

#endif
