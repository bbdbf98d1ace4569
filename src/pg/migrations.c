#include "pg/migrations.h"

#include <pthread.h>
#include <string.h>

#include "base/buf.h"

#define SET_BYTES_MAX (4 << 20)

/* "0001_installation.up.sql" */
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

struct str function_name(const struct embedded *file)
{
    const char *name = strrchr(file->name, '/') + 1;
    return (struct str){name, strlen(name) - strlen(".sql")};
}

static bool is_function(struct str name)
{
    static const struct str ending = {".sql", 4};
    return str_starts(name, STR(FUNCTIONS_FOLDER)) && name.len > ending.len &&
           str_eq((struct str){name.at + name.len - ending.len, ending.len}, ending);
}

/* "12 0123…": the number, and the checksum that the set had when it got it. */
static enum err read_set_number(const struct embedded *file, int *ret, struct why *why)
{
    struct str rest = file ? file->bytes : (struct str){0}, number = {0};
    int64_t n;
    if (!file || !str_split(&rest, ' ', &number) || str_to_i64(number, 1, INT32_MAX, &n))
        return why_set(why, ERR_INPUT, FUNCTIONS_FOLDER "set has no number: write it with tools/sql-set --write");
    *ret = (int)n;
    return OK;
}

/* As tools/lint/functions_set.py does. */
static enum err sum_set(struct function_set *set, struct why *why)
{
    AUTO(buf) struct buf all = buf_new(SET_BYTES_MAX);
    for (size_t i = 0; i <= set->count; i++) {
        const struct embedded *file = i < set->count ? set->functions[i] : set->triggers;
        if (file) {
            buf_addf(&all, "%s\n", file->name);
            buf_add(&all, file->bytes);
        }
    }
    if (all.failed)
        return why_set(why, all.failed, "the functions take more than %d bytes", SET_BYTES_MAX);
    struct digest digest = digest_sha256(buf_str(&all));
    digest_hex(&digest, set->checksum);
    return OK;
}

enum err functions_read(const struct embedded *files, size_t file_count, const struct embedded **into,
                        struct function_set *ret, struct why *why)
{
    struct function_set set = {.functions = into};
    const struct embedded *number = NULL;
    for (size_t i = 0; i < file_count; i++) {
        struct str name = str_of(files[i].name);
        if (str_eq(name, STR(FUNCTIONS_FOLDER "set")))
            number = &files[i];
        else if (str_eq(name, STR("sql/triggers.sql")))
            set.triggers = &files[i];
        if (!is_function(name))
            continue;
        if (set.count == FUNCTIONS_MAX)
            return why_set(why, ERR_FULL, "there are more than %d functions", FUNCTIONS_MAX);
        for (size_t other = 0; other < set.count; other++)
            if (str_eq(function_name(into[other]), function_name(&files[i])))
                return why_set(why, ERR_INPUT, "%s and %s define functions of the same name", into[other]->name,
                               files[i].name);
        into[set.count++] = &files[i];
    }
    enum err e = read_set_number(number, &set.number, why);
    if (e || (e = sum_set(&set, why)))
        return e;
    *ret = set;
    return OK;
}

/* Filled once, then only read. */
static struct {
    struct migration steps[MIGRATIONS_MAX];
    const struct embedded *functions[FUNCTIONS_MAX];
    struct function_set set;
    struct schema schema;
    enum err err;
    struct why why;
} known;

static void read_known(void)
{
    known.schema = (struct schema){.steps = known.steps, .set = &known.set};
    known.err = migrations_read(embedded_files, embedded_count, known.steps, &known.schema.count, &known.why);
    if (!known.err)
        known.err = functions_read(embedded_files, embedded_count, known.functions, &known.set, &known.why);
}

enum err migrations_embedded(const struct schema **ret, struct why *why)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, read_known);
    if (known.err)
        return why_set(why, known.err, "%s", known.why.text);
    *ret = &known.schema;
    return OK;
}
