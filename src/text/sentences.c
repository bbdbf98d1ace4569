#include "text/sentences.h"

#include <errno.h>
#include <ini.h>
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
    struct why *why;
    enum err err;
};

static int take(void *context, const char *section, const char *key, const char *value);

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
        int line = path.at ? ini_parse(path.at, take, &reading) : -2;
        if (reading.err)
            e = reading.err;
        else if (line > 0)
            e = why_set(why, ERR_INPUT, "%s: line %d is not `key = sentence`", path.at, line);
        else if (line == -1 && errno != ENOENT)
            e = why_set(why, ERR_SYSTEM, "%s cannot be read: %s", path.at, strerror(errno));
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

static int take(void *context, const char *section, const char *key, const char *value)
{
    struct reading *r = context;
    struct sentences *s = r->into;
    struct str name = arena_printf(s->arena, "%s.%s", section, key), wrong;
    enum text id;
    if (!name.at)
        r->err = ERR_MEMORY;
    else if (sentence_find(name, &id))
        r->err = why_set(r->why, ERR_INPUT, "%s: there is no sentence called %s", r->path, name.at);
    else if (!placeholders_are_known(str_of(value), s->at[r->language][id], &wrong))
        r->err = why_set(r->why, ERR_INPUT, "%s: %s cannot contain %.*s", r->path, name.at, STR_ARGS(wrong));
    else
        s->at[r->language][id] = arena_copy(s->arena, str_of(value));
    return r->err == OK;
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
