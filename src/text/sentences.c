#include "text/sentences.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

#define OVERRIDES_MAX ((size_t)4 * 1024 * 1024)

struct sentences {
    struct arena *arena; /* of what was replaced */
    struct str at[LANGUAGES][TEXT_COUNT];
};

struct reading { /* of one file */
    struct sentences *into;
    enum language language;
    const char *path;
    struct str section;
    int line;
    struct why *why;
};

static enum err read_file(struct reading *r);

enum err sentences_load(const char *folder, struct sentences **ret, struct why *why)
{
    struct sentences *s = calloc(1, sizeof *s);
    if (!s || !(s->arena = arena_new(1024, OVERRIDES_MAX))) {
        free(s);
        return why_set(why, ERR_MEMORY, "out of memory");
    }
    for (size_t l = 0; l < LANGUAGES; l++)
        for (size_t i = 0; i < TEXT_COUNT; i++)
            s->at[l][i] = str_of(built_in_sentences[l][i]);
    enum err e = OK;
    for (size_t l = 0; folder && l < LANGUAGES && !e; l++) {
        struct str path = arena_printf(s->arena, "%s/%s.ini", folder, language_tag((enum language)l));
        struct reading reading = {.into = s, .language = (enum language)l, .path = path.at, .why = why};
        e = path.at ? read_file(&reading) : ERR_MEMORY;
    }
    if (e)
        sentences_free(s);
    else
        *ret = s;
    return e;
}

void sentences_free(struct sentences *s)
{
    if (s)
        arena_free(s->arena);
    free(s);
}

/* A name that the built-in sentence does not have would stay in the text as it is. */
static bool has_placeholder(struct str text, struct str name)
{
    for (size_t i = 0; i + name.len <= text.len; i++)
        if (memcmp(text.at + i, name.at, name.len) == 0)
            return true;
    return false;
}

static bool placeholders_are_known(struct str text, struct str built_in, struct str *ret_wrong)
{
    for (const char *at = text.at, *end = text.at + text.len; (at = memchr(at, '{', (size_t)(end - at))); at++) {
        const char *closing = memchr(at, '}', (size_t)(end - at));
        if (!closing)
            return true;
        *ret_wrong = (struct str){at, (size_t)(closing - at) + 1};
        if (!has_placeholder(built_in, *ret_wrong))
            return false;
    }
    return true;
}

static enum err replace(struct reading *r, struct str key, struct str value)
{
    struct sentences *s = r->into;
    struct str name = arena_printf(s->arena, "%.*s.%.*s", STR_ARGS(r->section), STR_ARGS(key)), wrong;
    enum text id;
    if (!name.at)
        return ERR_MEMORY;
    if (sentence_find(name, &id))
        return why_set(r->why, ERR_INPUT, "%s: there is no sentence called %s", r->path, name.at);
    if (!placeholders_are_known(value, s->at[r->language][id], &wrong))
        return why_set(r->why, ERR_INPUT, "%s: %s cannot contain %.*s", r->path, name.at, STR_ARGS(wrong));
    s->at[r->language][id] = value;
    return OK;
}

/* "[section]", "key = sentence", or "; a comment". */
static enum err read_line(struct reading *r, struct str line)
{
    struct str key;
    r->line++;
    line = str_trim(line);
    if (!line.len || strchr(";#", *line.at))
        return OK;
    if (!str_is_utf8(line))
        return why_set(r->why, ERR_INPUT, "%s: line %d is not UTF-8", r->path, r->line);
    if (*line.at == '[' && line.at[line.len - 1] == ']') {
        r->section = (struct str){line.at + 1, line.len - 2};
        return OK;
    }
    str_split(&line, '=', &key);
    if (!line.at)
        return why_set(r->why, ERR_INPUT, "%s: line %d is not `key = sentence`", r->path, r->line);
    return replace(r, str_trim(key), str_trim(line));
}

/* inih's lines have at most 200 bytes; sentences may be longer. */
static enum err read_file(struct reading *r)
{
    AUTO(buf) struct buf content = buf_new(OVERRIDES_MAX / 4);
    char part[4096];
    FILE *file = fopen(r->path, "re");
    if (!file)
        return errno == ENOENT ? OK : why_set(r->why, ERR_SYSTEM, "%s cannot be read: %s", r->path, strerror(errno));
    for (size_t got; (got = fread(part, 1, sizeof part, file)) > 0;)
        buf_add(&content, (struct str){part, got});
    bool failed = ferror(file);
    fclose(file);
    if (failed || content.failed)
        return why_set(r->why, ERR_INPUT, "%s cannot be read, or is larger than 1 MiB", r->path);
    struct str rest = arena_copy(r->into->arena, buf_str(&content)), line;
    if (content.len && !rest.at)
        return ERR_MEMORY;
    if (str_starts(rest, STR("\xef\xbb\xbf")))
        rest = (struct str){rest.at + 3, rest.len - 3};
    enum err e = OK;
    while (!e && str_split(&rest, '\n', &line))
        e = read_line(r, line);
    return e;
}

struct str sentence(const struct sentences *s, enum language language, enum text id)
{
    return s->at[language][id];
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

enum err sentence_find(struct str key, enum text *ret)
{
    char name[128];
    if (str_copy(key, name, sizeof name))
        return ERR_MISSING;
    const char *wanted = name;
    const char *const *found = bsearch(&wanted, sentence_keys, TEXT_COUNT, sizeof *sentence_keys, compare);
    if (!found)
        return ERR_MISSING;
    *ret = (enum text)(found - sentence_keys);
    return OK;
}

void sentence_fill(struct buf *out, struct str text, bool (*value)(struct buf *out, struct str name, void *context),
                   void *context)
{
    const char *at = text.at, *end = text.at + text.len;
    while (at < end) {
        const char *open = memchr(at, '{', (size_t)(end - at));
        const char *close = open ? memchr(open, '}', (size_t)(end - open)) : NULL;
        if (!close) {
            buf_add(out, (struct str){at, (size_t)(end - at)});
            return;
        }
        buf_add(out, (struct str){at, (size_t)(open - at)});
        if (!value(out, (struct str){open + 1, (size_t)(close - open) - 1}, context))
            buf_add(out, (struct str){open, (size_t)(close - open) + 1});
        at = close + 1;
    }
}
