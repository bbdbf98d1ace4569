/* A folder of its own for each test, and an environment without settings. */
#ifndef TESTS_UNIT_OPS_ROOM_H
#define TESTS_UNIT_OPS_ROOM_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/unit.h"

static char room[128]; /* the folder */

/* The path of a file in the folder; good until the next call but three. */
static inline const char *in_room(const char *name)
{
    static char paths[4][256];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", room, name);
    return path;
}

static inline const char *write_file(const char *name, const char *text, mode_t mode)
{
    const char *path = in_room(name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, mode), 0);
    return path;
}

static inline int enter_room(void **state UNUSED)
{
    for (char **at = environ; at && *at;) {
        char name[256];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*at, "="), *at);
        if (strncmp(name, "RECLAIM_", 8) == 0 && strncmp(name, "RECLAIM_TEST_", 13) != 0 && unsetenv(name) == 0)
            at = environ;
        else
            at++;
    }
    const char *under = getenv("TMPDIR");
    snprintf(room, sizeof room, "%s/reclaim-settings-XXXXXX", under && *under ? under : "/tmp");
    return mkdtemp(room) ? 0 : -1;
}

static inline int remove_one(const char *path, const struct stat *st UNUSED, int kind UNUSED, struct FTW *at UNUSED)
{
    return remove(path);
}

static inline int leave_room(void **state UNUSED)
{
    return nftw(room, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

#define IN_ROOM(test) cmocka_unit_test_setup_teardown(test, enter_room, leave_room)

#endif
