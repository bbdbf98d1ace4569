#include "pages/templates.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/embedded.h"
#include "base/log.h"

#define FOLDER "web/templates/"
#define FILE_MAX ((size_t)1024 * 1024)

struct page_template {
    char name[64];
    struct template *parsed;
};

struct loading {
    const char *folder; /* the operator's; NULL: none */
    struct arena *arena;
};

/* The operator's file, or absent. */
static struct str read_file(const struct loading *l, const char *name)
{
    struct str path = arena_printf(l->arena, "%s/templates/%s.html", l->folder, name);
    FILE *file = path.at ? fopen(path.at, "re") : NULL;
    if (!file)
        return (struct str){NULL, 0};
    AUTO(buf) struct buf content = buf_new(FILE_MAX);
    char part[4096];
    for (size_t got; (got = fread(part, 1, sizeof part, file)) > 0;)
        buf_add(&content, (struct str){part, got});
    fclose(file);
    struct str text = buf_str(&content);
    return text.at ? arena_copy(l->arena, text) : text;
}

static struct str find(const char *name, void *context)
{
    const struct loading *l = context;
    char path[200];
    struct str own = l->folder ? read_file(l, name) : (struct str){NULL, 0};
    if (own.at)
        return own;
    snprintf(path, sizeof path, FOLDER "%s.html", name);
    const struct embedded *file = embedded_find(path);
    return file ? file->bytes : (struct str){NULL, 0};
}

/* "web/templates/recover.html" → "recover"; parts, in a folder of their own, are not pages. */
static bool page_name(const char *path, char name[64])
{
    struct str rest = str_of(path);
    if (!str_starts(rest, STR(FOLDER)))
        return false;
    rest = (struct str){rest.at + sizeof FOLDER - 1, rest.len - (sizeof FOLDER - 1) - (sizeof ".html" - 1)};
    return !memchr(rest.at, '/', rest.len) && !str_copy(rest, name, 64);
}

/* Files are sorted with their ending, which puts recover-done before recover. */
static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct page_template *)a)->name, ((const struct page_template *)b)->name);
}

enum err templates_load(struct pages *pages, struct why *why)
{
    struct loading loading = {pages->config.texts_folder, arena_new(1024, 16 * FILE_MAX)};
    const struct template_source source = {find, &loading};
    pages->templates = calloc(embedded_count, sizeof *pages->templates);
    enum err e = pages->templates && loading.arena ? OK : why_set(why, ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < embedded_count && !e; i++) {
        struct page_template *t = &pages->templates[pages->template_count];
        if (!page_name(embedded_files[i].name, t->name))
            continue;
        e = template_parse(t->name, &source, &t->parsed, why);
        pages->template_count += !e;
    }
    if (pages->templates)
        qsort(pages->templates, pages->template_count, sizeof *pages->templates, by_name);
    pages->template_texts = loading.arena; /* the operator's texts are used as they stand in it */
    return e;
}

void templates_free(struct pages *pages)
{
    for (size_t i = 0; i < pages->template_count; i++)
        template_free(pages->templates[i].parsed);
    free(pages->templates);
    arena_free(pages->template_texts);
}

static int compare(const void *name, const void *t)
{
    return strcmp(name, ((const struct page_template *)t)->name);
}

void templates_fill(const struct pages *pages, const char *name, const struct reader *reader, const json_t *values,
                    struct buf *out)
{
    const struct page_template *found =
        bsearch(name, pages->templates, pages->template_count, sizeof *pages->templates, compare);
    if (found)
        template_fill(found->parsed, reader, values, out);
    else
        log_error("a template is missing", F_STR("name", name));
}
