/* Addresses: whatever is taken has one form, and that form is taken as it is. */
#include "base/email.h"
#include "fuzz.h"

static void check_form(struct arena *arena, struct str email)
{
    struct str again;
    PROMISE(email.len > 0 && email.len <= EMAIL_MAX && strlen(email.at) == email.len);
    for (size_t i = 0; i < email.len; i++)
        PROMISE(email.at[i] > ' ' && email.at[i] < 0x7f && !(email.at[i] >= 'A' && email.at[i] <= 'Z'));
    const char *at = memchr(email.at, '@', email.len);
    PROMISE(at && at > email.at && !memchr(at + 1, '@', email.len - (size_t)(at + 1 - email.at)));
    PROMISE(memchr(at, '.', email.len - (size_t)(at - email.at)));
    PROMISE(email_normalise(arena, email, &again) == OK && str_eq(again, email));
}

/* Written in capitals, with white space around: the same address. */
static void check_dressed_up(struct arena *arena, struct str email)
{
    char dressed[EMAIL_MAX + 8] = " \t\r\n";
    size_t len = strlen(dressed);
    for (size_t i = 0; i < email.len; i++) {
        char c = email.at[i];
        dressed[len++] = c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
    }
    dressed[len++] = '\f';
    dressed[len++] = '\v';
    struct str same;
    PROMISE(email_normalise(arena, (struct str){dressed, len}, &same) == OK && str_eq(same, email));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = fuzz_arena();
    struct str given = fuzz_text(data, size), email;
    enum err e = email_normalise(arena, given, &email);
    PROMISE(e == OK || e == ERR_INPUT);
    if (e == OK) {
        check_form(arena, email);
        check_dressed_up(arena, email);
    }
    fuzz_text_free(given);
    arena_free(arena);
    return 0;
}
