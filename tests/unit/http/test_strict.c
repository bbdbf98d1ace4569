/* The installed libmicrohttpd reads request heads as src/http/strict.c expects. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "http/strict.h"

static void the_installed_library_is_one_that_can_be_used(void **state)
{
    (void)state;
    struct why why = {""};
    if (strict_check_library(&why))
        fail_msg("%s", why.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_installed_library_is_one_that_can_be_used)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
