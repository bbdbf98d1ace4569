/* A database of its own for each test of the migrator, of a role that is no superuser. */
#ifndef MIGRATE_SCENE_H
#define MIGRATE_SCENE_H

#include "pg/migrate.h"

struct scene {
    char name[64];
    char url[256];
    struct pg *pg;
};

#define STEPS(all, n) (&(struct schema){(all), (n), NULL})

int64_t soon(void);
void admin(const char *format, ...) PRINTF_LIKE(1, 2); /* as a superuser, in another database */
int scene_begin(void **state);
int scene_end(void **state);
void scene_again(struct scene *s); /* another session */
/* The first field, as a session of its own sees it. */
void expect(const struct scene *s, const char *sql, const char *expected);
struct migrate_report must_go_up(struct pg *pg, const struct schema *schema);
struct migrate_report must_go_down(struct pg *pg, const struct schema *schema, int steps);
struct migrate_report must_up(struct pg *pg, const struct migration *all, size_t count);
struct migrate_report must_down(struct pg *pg, const struct migration *all, size_t count, int steps);

#endif
