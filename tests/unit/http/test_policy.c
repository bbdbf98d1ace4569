#include "http/policy.h"

#include <string.h>

#include "../base/unit.h"

static struct ip ip_of(const char *text)
{
    struct ip ip;
    assert_int_equal(ip_parse(str_of(text), &ip), OK);
    return ip;
}

static struct cidr cidr_of(const char *text)
{
    struct cidr net;
    assert_int_equal(cidr_parse(str_of(text), &net), OK);
    return net;
}

static void assert_found(const struct http_policy *policy, bool has_key, const char *peer, const char *forwarded,
                         const char *expected)
{
    struct ip client = client_address(policy, ip_of(peer), has_key, str_of(forwarded));
    char text[IP_TEXT_MAX];
    ip_format(&client, text);
    assert_string_equal(text, expected);
}

static void assert_client(const struct http_policy *policy, const char *peer, const char *forwarded,
                          const char *expected)
{
    assert_found(policy, false, peer, forwarded, expected);
}

static void only_trusted_proxies_are_believed_and_from_the_right(void **state UNUSED)
{
    struct cidr nets[] = {cidr_of("10.0.0.0/8"), cidr_of("fd00::/8")};
    struct http_policy policy = {.proxies = nets, .proxy_count = COUNT_OF(nets)};
    assert_client(&policy, "192.0.2.7", "203.0.113.9", "192.0.2.7");
    assert_client(&policy, "10.0.0.1", "203.0.113.9", "203.0.113.9");
    assert_client(&policy, "10.0.0.1", "1.1.1.1, 203.0.113.9", "203.0.113.9");
    assert_client(&policy, "10.0.0.1", "1.1.1.1, 203.0.113.9 , 10.2.3.4", "203.0.113.9");
    assert_client(&policy, "fd00::1", "2001:db8::5", "2001:db8::5");
    assert_client(&policy, "10.0.0.1", "[2001:db8::5]:4711", "2001:db8::5");
    assert_client(&policy, "10.0.0.1", "203.0.113.9:80", "203.0.113.9");
    assert_client(&policy, "10.0.0.1", "10.0.0.2, 10.0.0.3", "10.0.0.2");
}

static void nonsense_from_a_proxy_counts_for_the_last_address_known(void **state UNUSED)
{
    struct cidr net = cidr_of("10.0.0.0/8");
    struct http_policy policy = {.proxies = &net, .proxy_count = 1};
    assert_client(&policy, "10.0.0.1", NULL, "10.0.0.1");
    assert_client(&policy, "10.0.0.1", "", "10.0.0.1");
    assert_client(&policy, "10.0.0.1", "unknown", "10.0.0.1");
    assert_client(&policy, "10.0.0.1", "203.0.113.9,", "10.0.0.1");
    assert_client(&policy, "10.0.0.1", "203.0.113.9, nonsense, 10.0.0.9", "10.0.0.9");
    assert_client(&policy, "10.0.0.1", ",,,,", "10.0.0.1");
}

static void the_key_vouches_for_one_caller_that_no_network_names(void **state UNUSED)
{
    struct http_policy alone = {.proxy_key = "unused here"};
    assert_found(&alone, true, "192.0.2.7", "203.0.113.9", "203.0.113.9");
    assert_found(&alone, true, "192.0.2.7", "1.1.1.1, 203.0.113.9", "203.0.113.9");
    assert_found(&alone, true, "2001:db8:1::7", "[2001:db8::5]:4711", "2001:db8::5");
    assert_found(&alone, true, "192.0.2.7", "", "192.0.2.7");
    assert_found(&alone, true, "192.0.2.7", "203.0.113.9, unknown", "192.0.2.7");

    struct cidr net = cidr_of("10.0.0.0/8");
    struct http_policy both = {.proxies = &net, .proxy_count = 1};
    assert_found(&both, true, "192.0.2.7", "203.0.113.9, 10.1.1.1", "203.0.113.9");
    assert_found(&both, true, "10.0.0.1", "203.0.113.9, 192.0.2.7", "203.0.113.9");
    assert_found(&both, true, "10.0.0.1", "1.1.1.1, 203.0.113.9, 192.0.2.7, 10.2.2.2", "203.0.113.9");
    assert_found(&both, true, "10.0.0.1", "203.0.113.9", "203.0.113.9");
    assert_found(&both, false, "10.0.0.1", "203.0.113.9, 192.0.2.7", "192.0.2.7");
}

static void only_the_whole_key_is_the_key(void **state UNUSED)
{
    static const char key[] = "0123456789abcdef0123456789abcdef";
    struct http_policy policy = {.proxy_key = key}, none = {0};
    assert_true(policy_knows_key(&policy, str_of(key)));
    static const char *const others[] = {"",
                                         "0",
                                         "0123456789abcdef0123456789abcde",
                                         "0123456789abcdef0123456789abcdef0",
                                         "0123456789ABCDEF0123456789abcdef",
                                         "1123456789abcdef0123456789abcdef"};
    for (size_t i = 0; i < COUNT_OF(others); i++)
        assert_false(policy_knows_key(&policy, str_of(others[i])));
    assert_false(policy_knows_key(&none, STR("")));
    assert_false(policy_knows_key(&none, str_of(key)));
}

static const char *header(const struct request *rq, const char *name)
{
    for (const struct reply_header *h = rq->reply.headers; h; h = h->next)
        if (strcmp(h->name, name) == 0)
            return h->value;
    return NULL;
}

static struct request *request_new(void)
{
    struct arena *arena = arena_new(1024, 65536);
    struct request *rq = arena_take(arena, sizeof *rq);
    rq->arena = arena;
    return rq;
}

static void every_origin_is_answered_with_a_star(void **state UNUSED)
{
    const char *origins[] = {"*"};
    struct http_policy policy = {.origins = origins, .origin_count = 1};
    struct request *rq = request_new();
    cors_headers(&policy, rq, STR("https://app.example.com"), 0);
    assert_string_equal(header(rq, "Access-Control-Allow-Origin"), "*");
    assert_null(header(rq, "Vary"));
    assert_non_null(header(rq, "Access-Control-Expose-Headers"));
    arena_free(rq->arena);
}

static void a_listed_origin_is_echoed_and_another_gets_nothing(void **state UNUSED)
{
    const char *origins[] = {"https://app.example.com", "https://admin.example.com"};
    struct http_policy policy = {.origins = origins, .origin_count = 2};
    struct request *known = request_new(), *stranger = request_new();
    cors_headers(&policy, known, STR("https://admin.example.com"), METHOD_POST | METHOD_OPTIONS);
    assert_string_equal(header(known, "Access-Control-Allow-Origin"), "https://admin.example.com");
    assert_string_equal(header(known, "Access-Control-Allow-Methods"), "POST, OPTIONS");
    assert_string_equal(header(known, "Vary"), "Origin");
    cors_headers(&policy, stranger, STR("https://app.example.com.attacker.example"), METHOD_POST | METHOD_OPTIONS);
    assert_null(header(stranger, "Access-Control-Allow-Origin"));
    assert_null(header(stranger, "Access-Control-Allow-Methods"));
    assert_string_equal(header(stranger, "Vary"), "Origin");
    arena_free(known->arena);
    arena_free(stranger->arena);
}

static void a_private_network_is_named_and_a_public_one_is_not(void **state UNUSED)
{
    static const struct {
        const char *address, *network;
    } cases[] = {{"10.1.2.3", "10.1.2.0/24"},
                 {"172.16.0.1", "172.16.0.0/24"},
                 {"172.31.255.255", "172.31.255.0/24"},
                 {"192.168.7.9", "192.168.7.0/24"},
                 {"169.254.1.1", "169.254.1.0/24"},
                 {"100.64.0.1", "100.64.0.0/24"},
                 {"127.0.0.1", "127.0.0.0/8"},
                 {"127.9.9.9", "127.0.0.0/8"},
                 {"::1", "::1/128"},
                 {"fd00:1:2:3::4", "fd00:1:2:3::/64"},
                 {"fe80::1", "fe80::/64"},
                 {"172.32.0.1", NULL},
                 {"172.15.0.1", NULL},
                 {"11.0.0.1", NULL},
                 {"192.169.0.1", NULL},
                 {"100.128.0.1", NULL},
                 {"203.0.113.9", NULL},
                 {"2001:db8::1", NULL},
                 {"::", NULL}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char network[IP_TEXT_MAX + 4] = "";
        struct ip ip = ip_of(cases[i].address);
        assert_int_equal(ip_private_network(&ip, network), cases[i].network != NULL);
        assert_string_equal(network, cases[i].network ? cases[i].network : "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_private_network_is_named_and_a_public_one_is_not),
        cmocka_unit_test(only_trusted_proxies_are_believed_and_from_the_right),
        cmocka_unit_test(nonsense_from_a_proxy_counts_for_the_last_address_known),
        cmocka_unit_test(the_key_vouches_for_one_caller_that_no_network_names),
        cmocka_unit_test(only_the_whole_key_is_the_key),
        cmocka_unit_test(every_origin_is_answered_with_a_star),
        cmocka_unit_test(a_listed_origin_is_echoed_and_another_gets_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
