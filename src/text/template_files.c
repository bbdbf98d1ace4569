#include "text/template_files.h"

#include <stdio.h>

#include "base/embedded.h"

#define FILE_MAX ((size_t)1024 * 1024)

/* The operator's file, or absent. */
static struct str read_file(const struct template_files *files, const char *name)
{
    struct str path = arena_printf(files->arena, "%s/templates/%s.html", files->folder, name);
    FILE *file = path.at ? fopen(path.at, "re") : NULL;
    if (!file)
        return (struct str){NULL, 0};
    AUTO(buf) struct buf content = buf_new(FILE_MAX);
    char part[4096];
    for (size_t got; (got = fread(part, 1, sizeof part, file)) > 0;)
        buf_add(&content, (struct str){part, got});
    fclose(file);
    struct str text = buf_str(&content);
    return text.at ? arena_copy(files->arena, text) : text;
}

static struct str find(const char *name, void *context)
{
    const struct template_files *files = context;
    char path[200];
    struct str own = files->folder ? read_file(files, name) : (struct str){NULL, 0};
    if (own.at)
        return own;
    snprintf(path, sizeof path, TEMPLATE_FILES "%s.html", name);
    const struct embedded *file = embedded_find(path);
    return file ? file->bytes : (struct str){NULL, 0};
}

struct template_source template_files_source(struct template_files *files)
{
    return (struct template_source){find, files};
}
