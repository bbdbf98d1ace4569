#include "pages/templates.h"

#include <stdlib.h>
#include <string.h>

#include "base/embedded.h"
#include "base/log.h"
#include "text/template_files.h"

#define TEXTS_MAX ((size_t)16 * 1024 * 1024)

struct page_template {
    char name[64];
    struct template *parsed;
};

/* "web/templates/recover.html" → "recover"; parts, in a folder of their own, are not pages. */
static bool page_name(const char *path, char name[64])
{
    struct str rest = str_of(path);
    if (!str_starts(rest, STR(TEMPLATE_FILES)))
        return false;
    rest = (struct str){rest.at + sizeof TEMPLATE_FILES - 1,
                        rest.len - (sizeof TEMPLATE_FILES - 1) - (sizeof ".html" - 1)};
    return !memchr(rest.at, '/', rest.len) && !str_copy(rest, name, 64);
}

static int compare_two(const void *a, const void *b)
{
    return strcmp(((const struct page_template *)a)->name, ((const struct page_template *)b)->name);
}

enum err templates_load(struct pages *pages, struct why *why)
{
    struct template_files files = {pages->config.texts_folder, arena_new(1024, TEXTS_MAX)};
    const struct template_source source = template_files_source(&files);
    pages->templates = calloc(embedded_count, sizeof *pages->templates);
    enum err e = pages->templates && files.arena ? OK : why_set(why, ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < embedded_count && !e; i++) {
        struct page_template *t = &pages->templates[pages->template_count];
        if (!page_name(embedded_files[i].name, t->name))
            continue;
        e = template_parse(t->name, &source, &t->parsed, why);
        pages->template_count += !e;
    }
    /* Files are sorted with their endings, "recover-done.html" before "recover.html". */
    if (pages->templates)
        qsort(pages->templates, pages->template_count, sizeof *pages->templates, compare_two);
    pages->template_texts = files.arena; /* the operator's texts are used as they stand in it */
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
