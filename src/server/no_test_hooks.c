/* What a program without -Dtest_hooks=true has in place of test_hooks.c. */
#include "server/test_hooks.h"

void test_hooks_add_routes(struct routes *r)
{
    (void)r;
}

int64_t test_hooks_request_deadline_ns(int64_t otherwise_ns)
{
    return otherwise_ns;
}

int64_t test_hooks_key_set_every_ns(int64_t otherwise_ns)
{
    return otherwise_ns;
}

int64_t test_hooks_key_set_again_ns(int64_t otherwise_ns)
{
    return otherwise_ns;
}

bool test_hooks_count_loopback(void)
{
    return false;
}

void test_hooks_shift_clocks(void)
{
}
