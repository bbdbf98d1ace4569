/* Sealed bytes: only the same key and purpose open them, and nothing in them can be changed. */
#include "base/seal.h"

#include <string.h>

#include "unit.h"

static const struct str content = {"what is sealed", 14};

static void what_was_sealed_can_be_opened_again(void **state UNUSED)
{
    struct digest key = digest_sha256(STR("key"));
    uint8_t box[14 + SEAL_EXTRA], again[14 + SEAL_EXTRA], opened[14];
    seal(&key, STR("purpose"), content, box);
    assert_int_equal(seal_open(&key, STR("purpose"), (struct str){(char *)box, sizeof box}, opened), OK);
    assert_memory_equal(opened, content.at, content.len);
    seal(&key, STR("purpose"), content, again);
    assert_memory_not_equal(box, again, sizeof box); /* a nonce of its own */
    assert_null(memmem(box, sizeof box, content.at, content.len));
}

static void nothing_can_be_sealed(void **state UNUSED)
{
    struct digest key = digest_sha256(STR("key"));
    uint8_t box[SEAL_EXTRA], opened[1];
    seal(&key, STR("purpose"), STR(""), box);
    assert_int_equal(seal_open(&key, STR("purpose"), (struct str){(char *)box, sizeof box}, opened), OK);
}

static void another_key_or_purpose_opens_nothing(void **state UNUSED)
{
    struct digest key = digest_sha256(STR("key")), other = digest_sha256(STR("other"));
    uint8_t box[14 + SEAL_EXTRA], opened[14];
    seal(&key, STR("purpose"), content, box);
    struct str sealed = {(char *)box, sizeof box};
    assert_int_equal(seal_open(&other, STR("purpose"), sealed, opened), ERR_INPUT);
    assert_int_equal(seal_open(&key, STR("purpos"), sealed, opened), ERR_INPUT);
    assert_int_equal(seal_open(&key, STR(""), sealed, opened), ERR_INPUT);
}

static void every_changed_bit_and_every_missing_byte_is_noticed(void **state UNUSED)
{
    struct digest key = digest_sha256(STR("key"));
    uint8_t box[14 + SEAL_EXTRA], opened[14];
    seal(&key, STR("purpose"), content, box);
    for (size_t bit = 0; bit < 8 * sizeof box; bit++) {
        box[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(seal_open(&key, STR("purpose"), (struct str){(char *)box, sizeof box}, opened), ERR_INPUT);
        box[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (size_t len = SEAL_EXTRA; len < sizeof box; len++)
        assert_int_equal(seal_open(&key, STR("purpose"), (struct str){(char *)box, len}, opened), ERR_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_sealed_can_be_opened_again),
        cmocka_unit_test(nothing_can_be_sealed),
        cmocka_unit_test(another_key_or_purpose_opens_nothing),
        cmocka_unit_test(every_changed_bit_and_every_missing_byte_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
