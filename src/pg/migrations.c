#include "pg/migrations.h"

#include <pthread.h>
#include <string.h>

/* "0001_foundation.up.sql" */
static bool read_name(struct str file, int *ret_version, struct str *ret_name, bool *ret_is_up)
{
    static const struct str up = {".up.sql", 7}, down = {".down.sql", 9};
    int64_t version;
    if (file.len < 6 || file.at[4] != '_' || str_to_i64((struct str){file.at, 4}, 1, MIGRATIONS_MAX, &version) != OK)
        return false;
    struct str rest = {file.at + 5, file.len - 5};
    for (int i = 0; i < 2; i++) {
        struct str ending = i == 0 ? up : down;
        if (rest.len <= ending.len || !str_eq((struct str){rest.at + rest.len - ending.len, ending.len}, ending))
            continue;
        *ret_version = (int)version;
        *ret_name = (struct str){rest.at, rest.len - ending.len};
        *ret_is_up = i == 0;
        return true;
    }
    return false;
}

static enum err take_file(const struct embedded *file, struct migration *into, struct why *why)
{
    struct str name;
    int version;
    bool is_up;
    if (!read_name(str_of(file->name + strlen(MIGRATIONS_FOLDER)), &version, &name, &is_up))
        return why_set(why, ERR_INPUT, "%s is not named like 0001_name.up.sql or 0001_name.down.sql", file->name);
    struct migration *m = &into[version - 1];
    struct str *script = is_up ? &m->up : &m->down;
    if (script->at != NULL || (m->version != 0 && !str_eq(str_of(m->name), name)))
        return why_set(why, ERR_INPUT, "%s: there is another migration with this number", file->name);
    m->version = version;
    *script = file->bytes;
    if (str_copy(name, m->name, sizeof m->name) != OK)
        return why_set(why, ERR_INPUT, "the name of %s is too long", file->name);
    return OK;
}

enum err migrations_read(const struct embedded *files, size_t file_count, struct migration *into, size_t *ret_count,
                         struct why *why)
{
    size_t count = 0;
    memset(into, 0, MIGRATIONS_MAX * sizeof *into);
    for (size_t i = 0; i < file_count; i++) {
        if (!str_starts(str_of(files[i].name), STR(MIGRATIONS_FOLDER)))
            continue;
        enum err e = take_file(&files[i], into, why);
        if (e)
            return e;
    }
    for (size_t i = 0; i < MIGRATIONS_MAX; i++)
        if (into[i].version != 0)
            count = i + 1;
    for (size_t i = 0; i < count; i++)
        if (into[i].up.at == NULL || into[i].down.at == NULL)
            return why_set(why, ERR_INPUT, "migration %04zu has no %s file", i + 1,
                           into[i].up.at == NULL ? "up" : "down");
    *ret_count = count;
    return OK;
}

/* Filled once, then only read. */
static struct {
    struct migration all[MIGRATIONS_MAX];
    size_t count;
    enum err err;
    struct why why;
} known;

static void read_known(void)
{
    known.err = migrations_read(embedded_files, embedded_count, known.all, &known.count, &known.why);
}

enum err migrations_embedded(const struct migration **ret, size_t *ret_count, struct why *why)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, read_known);
    if (known.err)
        return why_set(why, known.err, "%s", known.why.text);
    *ret = known.all;
    *ret_count = known.count;
    return OK;
}
