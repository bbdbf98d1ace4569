/* Private clusters that tests kill, move and restart; shared by the tests of the cluster. */
#ifndef TESTS_CLUSTER_SCENE_H
#define TESTS_CLUSTER_SCENE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "cluster/cluster.h"

#define NOBODY 65534

struct scene {
    char base[64]; /* removed after the test, with every data directory */
    char data_dir[PATH_MAX];
};

extern struct scene scene;
extern char ready_made[64]; /* the data directory of a cluster, which most tests copy at their start */

/* For cmocka: set-up with a copy of the cluster in the data directory, set-up without, and the tear-down, which fails
 * when a server is still running. */
int scene_begin(void **state);
int scene_begin_bare(void **state);
int scene_end(void **state);
#define PROMISE(name) cmocka_unit_test_setup_teardown(name, scene_begin, scene_end)
#define PROMISE_AFRESH(name) cmocka_unit_test_setup_teardown(name, scene_begin_bare, scene_end)
/* The same for the whole group. */
int make_ready(void **state);
int remove_ready(void **state);

/* Runs the tests as the current user and, for root, once more as an ordinary user. */
int run_as_everyone(int (*run)(const char *name));
bool become_nobody(void);

void say(char *into, size_t size, const char *format, ...) PRINTF_LIKE(3, 4);
void read_text(const char *path, char *into, size_t size); /* "" when it cannot be read */
int run_program(const char *program, const char *options, const char *path, const char *other_path);
void remove_tree(const char *path);
int servers_below(const char *path); /* processes whose working directory is there or below */

/* The test fails when these fail. */
struct cluster *start(const char *data_dir);
void stop(struct cluster *c);
/* The first value of the result, on a separate connection. */
void ask(const char *url, const char *sql, char *into, size_t size);
void expect_answer(const char *url, const char *sql, const char *expected);

/* Another process that owns a cluster. */
struct owner {
    pid_t pid, server;
    char url[256];
};
struct owner start_owner(const char *data_dir);
void kill_owner(const struct owner *owner);

#endif
