/* A libmicrohttpd whose heads cannot be judged keeps the server from starting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "http/strict.h"

static bool verdict;

/* In place of strict.c's: what it would say if the library laid heads out otherwise. */
bool strict_accepts(struct MHD_Connection *connection, const char *method, const char *version)
{
    (void)connection, (void)method, (void)version;
    return verdict;
}

static void a_library_whose_folded_lines_go_unnoticed_is_refused(void **state)
{
    (void)state;
    struct why why = {""};
    verdict = true;
    assert_int_equal(strict_check_library(&why), ERR_SYSTEM);
    assert_non_null(strstr(why.text, "accepts a request head"));
    assert_non_null(strstr(why.text, MHD_get_version()));
}

static void a_library_whose_sound_heads_look_wrong_is_refused(void **state)
{
    (void)state;
    struct why why = {""};
    verdict = false;
    assert_int_equal(strict_check_library(&why), ERR_SYSTEM);
    assert_non_null(strstr(why.text, "refuses a request head"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_library_whose_folded_lines_go_unnoticed_is_refused),
        cmocka_unit_test(a_library_whose_sound_heads_look_wrong_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
