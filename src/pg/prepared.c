#include "pg/prepared.h"

#include <string.h>

static size_t slot_of(const char *name)
{
    uint32_t hash = 2166136261u;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return hash % PREPARED_SLOTS;
}

struct prepared *prepared_find(struct pg *pg, const struct statement *ask)
{
    size_t length = strlen(ask->name);
    if (length == 0 || length > PREPARED_NAME_MAX || strchr(ask->name, '"'))
        return NULL;
    size_t at = slot_of(ask->name);
    for (; pg->prepared[at].name; at = (at + 1) % PREPARED_SLOTS) {
        struct prepared *p = &pg->prepared[at];
        if (strcmp(p->name, ask->name) != 0)
            continue;
        /* Another statement with the same name replaces it, as after a change of the schema. */
        if (p->sql != ask->sql && strcmp(p->sql, ask->sql) != 0 && p->state != PREPARED_NOT)
            p->state = PREPARED_STALE;
        p->name = ask->name;
        p->sql = ask->sql;
        return p;
    }
    if (pg->prepared_count == PREPARED_MOST)
        return NULL;
    pg->prepared_count++;
    pg->prepared[at] = (struct prepared){.name = ask->name, .sql = ask->sql, .state = PREPARED_NOT};
    return &pg->prepared[at];
}
