/* Where settings come from: the environment, an INI file, and files that hold a single value. */
#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest.h"
#include "settings/table.h"

#define VALUE_MAX ((size_t)8192)
#define LINE_MAX_LEN ((int)VALUE_MAX + 256)

void settings_warn(struct settings *s, struct str sentence)
{
    if (sentence.at && s->warnings.count < COUNT_OF(s->origin->warnings))
        s->origin->warnings[s->warnings.count++] = sentence.at;
    s->warnings.at = s->origin->warnings;
}

/* The values of one source; a name may occur once in it. */
struct source {
    struct settings *s;
    const struct given *over; /* values of the source that takes precedence; NULL for none */
    struct given given[SETTINGS_MAX];
    struct why *why;
};

static void warn_unknown(struct settings *s, const char *name, const char *where)
{
    char stem[64];
    size_t len = strlen(name);
    bool file = len > 5 && strcmp(name + len - 5, "_FILE") == 0;
    snprintf(stem, sizeof stem, "%.*s", (int)(file ? len - 5 : len > 63 ? 63 : len), name);
    const char *nearest = setting_nearest(stem);
    struct arena *arena = s->origin->arena;
    struct str place = arena_printf(arena, "%s%s", where ? where : "", where ? ": " : "");
    struct str hint = nearest ? arena_printf(arena, "; did you mean %s%s?", nearest, file ? "_FILE" : "") : STR("");
    if (place.at && hint.at)
        settings_warn(s, arena_printf(arena, "%s%.80s is no setting of Reclaim%s", place.at, name, hint.at));
}

/* The file's bytes without the newline at its end. */
static enum err read_value(const char *name, const char *path, char into[VALUE_MAX + 1], struct why *why)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return why_set(why, ERR_SYSTEM, "%s: cannot read \"%s\": %s", name, path, strerror(errno));
    size_t len = 0;
    ssize_t got;
    while (len <= VALUE_MAX && (got = read(fd, into + len, VALUE_MAX + 1 - len)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            break;
        len += (size_t)got;
    }
    int error = errno;
    close(fd);
    if (got < 0)
        return why_set(why, ERR_SYSTEM, "%s: cannot read \"%s\": %s", name, path, strerror(error));
    if (len > VALUE_MAX)
        return why_set(why, ERR_INPUT, "%s: \"%s\" is longer than %zu bytes", name, path, VALUE_MAX);
    if (len > 0 && into[len - 1] == '\n')
        len--;
    if (len > 0 && into[len - 1] == '\r')
        len--;
    if (len == 0 || memchr(into, '\0', len))
        return why_set(why, ERR_INPUT, "%s: \"%s\" %s", name, path, len ? "holds a NUL byte" : "is empty");
    into[len] = '\0';
    return OK;
}

/* Warns when a file that holds a secret can be read by every user. */
static void warn_if_it_shows(struct settings *s, const struct setting *row, const char *text, const char *path)
{
    AUTO(buf) struct buf shown = buf_new((size_t)64 << 10);
    struct stat st;
    setting_show(row, str_of(text), &shown);
    struct str seen = buf_str(&shown);
    if (seen.at && strstr(seen.at, "***") && stat(path, &st) == 0 && (st.st_mode & S_IROTH))
        settings_warn(s, arena_printf(s->origin->arena,
                                      "%s: \"%s\" can be read by every user of this machine; chmod o-r it", row->name,
                                      path));
}

static enum err take_from_file(struct source *in, const struct setting *row, const char *name, const char *path,
                               struct given *place)
{
    char value[VALUE_MAX + 1];
    enum err e = read_value(name, path, value, in->why);
    if (!e) {
        place->text = (char *)arena_copy(in->s->origin->arena, str_of(value)).at;
        place->where = arena_copy(in->s->origin->arena, str_of(path)).at;
        if (!place->text || !place->where)
            e = why_set(in->why, ERR_MEMORY, "%s: no memory for its value", name);
        else
            warn_if_it_shows(in->s, row, value, path);
    }
    secret_wipe(value, sizeof value);
    return e;
}

/* One NAME or NAME_FILE of a source; `where` is NULL for the environment. */
static enum err take(struct source *in, const char *name, const char *value, const char *where)
{
    bool from_file;
    const struct setting *row = setting_find(name, &from_file);
    if (!row) {
        if (strncmp(name, "RECLAIM_TEST_", 13) != 0)
            warn_unknown(in->s, name, where);
        return OK;
    }
    if (!*value)
        return OK;
    struct given *place = &in->given[row - settings_rows];
    if (place->text)
        return why_set(in->why, ERR_INPUT, "%s%s%s is set twice; give it, or %s_FILE, once", where ? where : "",
                       where ? ": " : "", row->name, row->name);
    if (strlen(value) > VALUE_MAX)
        return why_set(in->why, ERR_INPUT, "%s: its value is longer than %zu bytes", name, VALUE_MAX);
    place->by = where ? GIVEN_BY_FILE : GIVEN_BY_ENVIRONMENT;
    bool overruled = in->over && in->over[row - settings_rows].text;
    if (from_file && !overruled)
        return take_from_file(in, row, name, value, place);
    place->text = (char *)arena_copy(in->s->origin->arena, str_of(value)).at;
    place->where = where;
    if (!place->text)
        return why_set(in->why, ERR_MEMORY, "%s: no memory for its value", name);
    if (where)
        warn_if_it_shows(in->s, row, value, in->s->origin->config_file);
    return OK;
}

static enum err take_environment(struct source *in)
{
    for (char **at = environ; at && *at; at++) {
        char name[64];
        const char *equals = strchr(*at, '=');
        if (!equals || strncmp(*at, "RECLAIM_", 8) != 0)
            continue;
        snprintf(name, sizeof name, "%.*s", (int)(equals - *at), *at);
        enum err e = take(in, name, equals + 1, NULL);
        if (e)
            return e;
    }
    return OK;
}

/* The INI file while inih reads it, line by line. */
struct ini {
    struct source *in;
    FILE *file;
    char *line;
    size_t size;
    int number;   /* of the line read last */
    enum err err; /* the first failure; `why` is written then */
};

static void ini_fail(struct ini *ini, const char *what)
{
    if (!ini->err)
        ini->err =
            why_set(ini->in->why, ERR_INPUT, "%s, line %d: %s", ini->in->s->origin->config_file, ini->number, what);
}

/* Reads a line for inih, as fgets does. A line that inih would split or end at a NUL is an error. */
static char *next_line(char *into, int size, void *context)
{
    struct ini *ini = context;
    ssize_t len = ini->err ? -1 : getline(&ini->line, &ini->size, ini->file);
    if (len < 0)
        return NULL;
    ini->number++;
    if (memchr(ini->line, '\0', (size_t)len)) {
        ini_fail(ini, "holds a NUL byte");
        return NULL;
    }
    if (len >= size) {
        ini_fail(ini, "is too long");
        return NULL;
    }
    memcpy(into, ini->line, (size_t)len + 1);
    return into;
}

/* Called by inih for each pair; 1 means success. */
static int take_pair(void *context, const char *section, const char *name, const char *value)
{
    (void)section;
    struct ini *ini = context;
    struct settings *s = ini->in->s;
    size_t len = strlen(value);
    struct str where = arena_printf(s->origin->arena, "%s, line %d", s->origin->config_file, ini->number);
    if (len >= 2 && (*value == '"' || *value == '\'') && value[len - 1] == *value)
        ini_fail(ini, "values are written without quotes");
    else if (!where.at)
        ini_fail(ini, "no memory for it");
    else
        ini->err = take(ini->in, name, value, where.at);
    return ini->err == OK;
}

static enum err take_config_file(struct source *in)
{
    const char *path = in->s->origin->config_file;
    struct ini ini = {.in = in, .file = fopen(path, "re")};
    if (!ini.file)
        return why_set(in->why, ERR_SYSTEM, "cannot read the configuration file \"%s\": %s", path, strerror(errno));
    /* inih's options are global, src/text sets them too: no indented continuation, no comment after a value. */
    ini_use_stack = false;
    ini_allow_realloc = false;
    ini_initial_alloc = ini_max_line = LINE_MAX_LEN;
    ini_allow_multiline = false;
    ini_allow_inline_comments = false;
    ini_stop_on_first_error = true;
    int bad_line = ini_parse_stream(next_line, &ini, take_pair, &ini);
    if (ferror(ini.file))
        ini.err = why_set(in->why, ERR_SYSTEM, "cannot read the configuration file \"%s\"", path);
    else if (bad_line)
        ini_fail(&ini, "expected NAME = value, a [section] or a comment that begins with ; or #");
    if (ini.line)
        secret_wipe(ini.line, ini.size);
    free(ini.line);
    fclose(ini.file);
    return ini.err;
}

enum err settings_gather(struct settings *s, struct why *why)
{
    struct source environment = {.s = s, .why = why};
    struct source file = {.s = s, .over = environment.given, .why = why};
    enum err e = take_environment(&environment);
    if (!e && s->origin->config_file)
        e = take_config_file(&file);
    /* On failure too: settings_free() wipes the values. */
    for (size_t i = 0; i < settings_count; i++) {
        bool overruled = environment.given[i].text && file.given[i].text;
        if (overruled)
            secret_wipe(file.given[i].text, strlen(file.given[i].text));
        s->origin->given[i] = environment.given[i].text ? environment.given[i] : file.given[i];
    }
    return e;
}
