/* Signed documents: only what a key of the set has signed is read, and only as what it was signed for. */
#include "proof/jws.h"

#include <string.h>

#include "../base/unit.h"

static struct proof_keys keys;
static struct proof_key_set two;

static int derive(void **state UNUSED)
{
    assert_int_equal(proof_keys_derive(STR("a master key that is long enough"), &keys), OK);
    proof_keys_public(&keys, 2, &two);
    return 0;
}

static enum err read_back(struct str text, const struct proof_key_set *set, struct why *why)
{
    AUTO(buf) struct buf payload = buf_new(4096);
    enum err e = jws_read(text, JWS_HEAD, set, &payload, why);
    if (!e)
        assert_str(buf_str(&payload), "{\"size\":1}");
    return e;
}

static void what_either_generation_signed_can_be_read(void **state UNUSED)
{
    struct why why;
    for (int i = 0; i < 2; i++) {
        AUTO(buf) struct buf out = buf_new(4096);
        jws_write(&keys.generations[i], JWS_HEAD, STR("{\"size\":1}"), &out);
        assert_int_equal(read_back(buf_str(&out), &two, &why), OK);
    }
    AUTO(buf) struct buf third = buf_new(4096);
    jws_write(&keys.generations[2], JWS_HEAD, STR("{\"size\":1}"), &third);
    assert_int_equal(read_back(buf_str(&third), &two, &why), ERR_INPUT);
    assert_non_null(strstr(why.text, "not in the key set"));
}

static void a_document_of_another_kind_is_refused(void **state UNUSED)
{
    struct why why;
    AUTO(buf) struct buf out = buf_new(4096);
    jws_write(&keys.generations[0], JWS_CERTIFICATE, STR("{\"size\":1}"), &out);
    assert_int_equal(read_back(buf_str(&out), &two, &why), ERR_INPUT);
    assert_non_null(strstr(why.text, "type"));
}

static void no_character_can_be_changed_or_cut(void **state UNUSED)
{
    struct why why;
    AUTO(buf) struct buf out = buf_new(4096);
    jws_write(&keys.generations[0], JWS_HEAD, STR("{\"size\":1}"), &out);
    struct str all = buf_str(&out);
    char copy[4096];
    for (size_t i = 0; i < all.len; i++) {
        memcpy(copy, all.at, all.len);
        copy[i] = copy[i] == 'A' ? 'B' : 'A';
        assert_int_equal(read_back((struct str){copy, all.len}, &two, &why), ERR_INPUT);
        assert_int_equal(read_back((struct str){all.at, i}, &two, &why), ERR_INPUT);
    }
}

static void a_key_set_is_read_as_it_was_written(void **state UNUSED)
{
    AUTO(buf) struct buf text = buf_new(4096);
    struct proof_key_set again;
    struct why why;
    proof_key_set_write(&two, &text);
    assert_int_equal(proof_key_set_read(buf_str(&text), &again, &why), OK);
    assert_int_equal(again.count, 2);
    assert_string_equal(again.keys[1].kid, two.keys[1].kid);
    assert_int_equal(proof_key_set_read(STR("{\"keys\":[{\"kty\":\"RSA\",\"n\":\"AQAB\"}]}"), &again, &why), ERR_INPUT);
    assert_int_equal(proof_key_set_read(STR("[]"), &again, &why), ERR_INPUT);
}

int main(void)
{
    const struct CMUnitTest promises[] = {
        cmocka_unit_test(what_either_generation_signed_can_be_read),
        cmocka_unit_test(a_document_of_another_kind_is_refused),
        cmocka_unit_test(no_character_can_be_changed_or_cut),
        cmocka_unit_test(a_key_set_is_read_as_it_was_written),
    };
    return cmocka_run_group_tests(promises, derive, NULL);
}
