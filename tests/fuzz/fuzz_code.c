/* Codes: what is shown is read back, whatever was typed either is a code or is none, and a derived one is always one.
 * The first byte chooses the contract, the next 16 are the salt of the derived code, the rest was typed. */
#include "fuzz.h"
#include "recovery/contract.h"

/* In lower case, with white space around and, where codes are shown in groups, between the symbols: the same code. */
static void check_dressed_down(const struct code_shape *shape, const struct code *code)
{
    char dressed[3 * CODE_TEXT_MAX] = " ";
    size_t len = 1;
    for (int i = 0; i < shape->symbols; i++) {
        char c = code->symbols[i];
        dressed[len++] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
        if (shape->group)
            dressed[len++] = i % 2 ? ' ' : '-';
    }
    dressed[len++] = '\n';
    struct code same;
    PROMISE(code_read(shape, (struct str){dressed, len}, &same) == OK && strcmp(same.symbols, code->symbols) == 0);
}

static void check_read(const struct code_shape *shape, struct str typed)
{
    struct code code, again;
    char shown[CODE_TEXT_MAX];
    if (code_read(shape, typed, &code))
        return;
    PROMISE(strlen(code.symbols) == (size_t)shape->symbols);
    for (int i = 0; i < shape->symbols; i++)
        PROMISE(strchr(shape->alphabet, code.symbols[i]) || strchr(shape->also_well_formed, code.symbols[i]));
    code_show(shape, &code, shown);
    PROMISE(code_read(shape, str_of(shown), &again) == OK && strcmp(again.symbols, code.symbols) == 0);
    check_dressed_down(shape, &code);
}

static void check_derived(const struct code_keys *keys, const struct code_shape *shape, const struct code_salt *salt)
{
    static const char user[] = "7b1c9a54-30c5-4f0e-9a51-4a4f3ad0a0a1";
    struct code code = code_derive(keys, shape, salt, user), same = code_derive(keys, shape, salt, user), read;
    char shown[CODE_TEXT_MAX], hex[2 * CODE_SALT_LEN + 1];
    struct code_salt salt_again;
    PROMISE(strspn(code.symbols, shape->alphabet) == (size_t)shape->symbols);
    PROMISE(strlen(code.symbols) == (size_t)shape->symbols && strcmp(code.symbols, same.symbols) == 0);
    code_show(shape, &code, shown);
    PROMISE(code_read(shape, str_of(shown), &read) == OK);
    struct digest stored = code_hash(keys, salt, &code), typed = code_hash(keys, salt, &read);
    PROMISE(digest_eq(&stored, &typed));
    code_salt_hex(salt, hex);
    PROMISE(code_salt_parse(str_of(hex), &salt_again) == OK && memcmp(&salt_again, salt, sizeof *salt) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct code_keys keys;
    static bool ready;
    if (!ready)
        PROMISE(code_keys_derive(STR("a key of no worth, for fuzzing only"), CODE_FOR_CLEANUP, &keys) == OK);
    ready = true;
    if (size < 1 + CODE_SALT_LEN)
        return -1; /* not worth a place in the corpus */
    const struct contract *contract = data[0] % 2 ? &contract_registration_recovery : &contract_cleanup_v1;
    struct code_salt salt;
    memcpy(salt.bytes, data + 1, CODE_SALT_LEN);
    struct str typed = fuzz_text(data + 1 + CODE_SALT_LEN, size - 1 - CODE_SALT_LEN);
    check_read(&contract->code, typed);
    check_derived(&keys, &contract->code, &salt);
    (void)!code_salt_parse(typed, &salt);
    fuzz_text_free(typed);
    return 0;
}
