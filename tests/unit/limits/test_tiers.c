#include "limits/tiers.h"

#include <string.h>

#include "../base/unit.h"

static const struct digest key_a = {{1}}, key_b = {{2}};

static struct ip ip_of(const char *text)
{
    struct ip ip;
    assert_int_equal(ip_parse(str_of(text), &ip), OK);
    return ip;
}

static bool same_subject(const char *a, const char *b)
{
    struct ip first = ip_of(a), second = ip_of(b);
    struct counted one = counted_by_ip(TIER_IP, &key_a, &first), other = counted_by_ip(TIER_IP, &key_a, &second);
    return digest_eq(&one.subject, &other.subject);
}

static void an_ipv4_client_counts_by_itself_and_ipv6_by_its_64(void **state UNUSED)
{
    assert_false(same_subject("192.0.2.1", "192.0.2.2"));
    assert_true(same_subject("192.0.2.1", "::ffff:192.0.2.1"));
    assert_true(same_subject("2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff"));
    assert_false(same_subject("2001:db8:1:2::1", "2001:db8:1:3::1"));
}

static void keys_tell_tiers_apart_and_subjects_only_under_their_key(void **state UNUSED)
{
    char global[COUNTED_KEY_MAX], ask[COUNTED_KEY_MAX], try[COUNTED_KEY_MAX], other[COUNTED_KEY_MAX];
    struct counted c = counted_globally();
    counted_key(&c, global);
    assert_string_equal(global, "global");
    c = counted_by_email(TIER_EMAIL, &key_a, STR("user@example.com"));
    counted_key(&c, ask);
    c = counted_by_email(TIER_EMAIL_VALIDATE, &key_a, STR("user@example.com"));
    counted_key(&c, try);
    c = counted_by_email(TIER_EMAIL, &key_b, STR("user@example.com"));
    counted_key(&c, other);
    assert_int_equal(strlen(ask), strlen("email:") + 64);
    assert_memory_equal(ask, "email:", 6);
    assert_string_equal(strchr(ask, ':'), strchr(try, ':'));
    assert_string_not_equal(ask, try);
    assert_string_not_equal(ask, other);
}

static void must_hash_alike(const struct digest *key, const struct ip *client)
{
    struct digest expected = digest_hmac(key, (struct str){(const char *)client->bytes, sizeof client->bytes});
    struct counted counted = counted_by_ip(TIER_IP, key, client);
    assert_true(digest_eq(&counted.subject, &expected));
}

static void an_address_is_hashed_alike_whoever_came_between(void **state UNUSED)
{
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 500; i++) {
            struct ip client = {{[10] = 0xff, 0xff, 10, 0, (uint8_t)(i >> 8), (uint8_t)i}};
            must_hash_alike(&key_a, &client);
            must_hash_alike(&key_a, &client);
        }
        struct ip last = {{[10] = 0xff, 0xff, 10, 0, 499 >> 8, (uint8_t)499}};
        must_hash_alike(&key_b, &last);
    }
}

static void ipv6_clients_of_one_48_are_one_site(void **state UNUSED)
{
    struct ip here = ip_of("2001:db8:1:2::1"), near = ip_of("2001:db8:1:ffff:1::"), far = ip_of("2001:db8:2:2::1");
    struct counted a = counted_by_site(TIER_IP_SITE, &key_a, &here), b = counted_by_site(TIER_IP_SITE, &key_a, &near),
                   c = counted_by_site(TIER_IP_SITE, &key_a, &far);
    assert_true(digest_eq(&a.subject, &b.subject));
    assert_false(digest_eq(&a.subject, &c.subject));
    assert_int_equal(limit_of_many((struct limit){5, 60}).requests, 50);
    assert_int_equal(limit_of_many((struct limit){0, 0}).requests, 0); /* off stays off */
}

static void a_pair_is_an_address_and_a_network(void **state UNUSED)
{
    struct ip here = ip_of("2001:db8:1:2::1"), near = ip_of("2001:db8:1:2::2"), far = ip_of("2001:db8:1:3::1");
    struct counted a = counted_by_email_and_ip(TIER_LOGIN, &key_a, STR("a@example.com"), &here),
                   b = counted_by_email_and_ip(TIER_LOGIN, &key_a, STR("a@example.com"), &near),
                   c = counted_by_email_and_ip(TIER_LOGIN, &key_a, STR("a@example.com"), &far),
                   d = counted_by_email_and_ip(TIER_LOGIN, &key_a, STR("b@example.com"), &here);
    assert_true(digest_eq(&a.subject, &b.subject));
    assert_false(digest_eq(&a.subject, &c.subject));
    assert_false(digest_eq(&a.subject, &d.subject));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_ipv4_client_counts_by_itself_and_ipv6_by_its_64),
        cmocka_unit_test(ipv6_clients_of_one_48_are_one_site),
        cmocka_unit_test(a_pair_is_an_address_and_a_network),
        cmocka_unit_test(keys_tell_tiers_apart_and_subjects_only_under_their_key),
        cmocka_unit_test(an_address_is_hashed_alike_whoever_came_between),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
