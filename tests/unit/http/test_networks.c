/* Open connections by client network. */
#include "http/networks.h"

#include <stdlib.h>

#include "../base/unit.h"

static struct ip ip_of(const char *text)
{
    struct ip ip;
    assert_int_equal(ip_parse(str_of(text), &ip), OK);
    return ip;
}

static void an_ipv4_address_and_an_ipv6_64_are_one_network(void **state UNUSED)
{
    struct networks *n = networks_new(10);
    struct ip v4 = ip_of("192.0.2.1"), neighbour = ip_of("192.0.2.2");
    struct ip v6 = ip_of("2001:db8::1"), same = ip_of("2001:db8::ffff:1"), other = ip_of("2001:db8:0:1::1");
    assert_true(networks_add(n, &v4));
    assert_true(networks_add(n, &v4));
    assert_int_equal(networks_count(n, &v4), 2);
    assert_int_equal(networks_count(n, &neighbour), 0);
    assert_true(networks_add(n, &v6));
    assert_true(networks_add(n, &same));
    assert_int_equal(networks_count(n, &v6), 2);
    assert_int_equal(networks_count(n, &other), 0);
    networks_remove(n, &v6);
    assert_int_equal(networks_count(n, &same), 1);
    networks_remove(n, &v4);
    networks_remove(n, &v4);
    networks_remove(n, &v4); /* one too many changes nothing */
    assert_int_equal(networks_count(n, &v4), 0);
    networks_free(n);
}

/* Compares with a plain array while networks come and go at random. */
static void counts_stay_right_while_networks_come_and_go(void **state UNUSED)
{
    enum { NETWORKS = 60 };
    struct networks *n = networks_new(NETWORKS);
    int expected[NETWORKS] = {0};
    unsigned seed = 7;
    for (int round = 0; round < 20000; round++) {
        seed = seed * 1103515245 + 12345;
        int i = (int)(seed >> 16) % NETWORKS;
        struct ip ip = {{0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, (uint8_t)i, 0, 0, 0, 0, 0, 0, 0, (uint8_t)round}};
        if ((seed >> 8) % 3) {
            assert_true(networks_add(n, &ip));
            expected[i]++;
        } else if (expected[i]) {
            networks_remove(n, &ip);
            expected[i]--;
        }
        assert_int_equal(networks_count(n, &ip), expected[i]);
    }
    for (int i = 0; i < NETWORKS; i++) {
        struct ip ip = {{0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, (uint8_t)i}};
        for (; expected[i]; expected[i]--)
            networks_remove(n, &ip);
        assert_int_equal(networks_count(n, &ip), 0);
    }
    networks_free(n);
}

static void a_full_table_counts_no_further_network(void **state UNUSED)
{
    struct networks *n = networks_new(1);
    int added = 0;
    for (int i = 0; i < 1000; i++) {
        struct ip ip = {{0x20, 0x01, 0x0d, 0xb8, 0, 0, (uint8_t)(i >> 8), (uint8_t)i}};
        added += networks_add(n, &ip);
    }
    assert_int_equal(added, 32);
    networks_free(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_ipv4_address_and_an_ipv6_64_are_one_network),
        cmocka_unit_test(counts_stay_right_while_networks_come_and_go),
        cmocka_unit_test(a_full_table_counts_no_further_network),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
