#include "erasure/storage_walk.h"

#include <stdlib.h>
#include <string.h>

#include "base/digest.h"

#define PATH_BYTES ((size_t)16 * 1024)
#define FOLDERS_BYTES ((size_t)8 * 1024 * 1024)
#define LEVELS_MAX 1100 /* names have at most 1024 bytes */
#define PAGE_BYTES ((size_t)2 * 1024 * 1024)

struct storage_level {  /* a folder between the user's and the current one */
    size_t path_len;    /* of its path, slash included */
    size_t from, next;  /* its folders of this page, in walk.folders: the first, and the one to enter next */
    int64_t skip;       /* entries that were not deleted: the next page begins behind them */
    int64_t stays;      /* of this page */
    int64_t listed_at;  /* the skip with which the last page was asked for; -1: none was */
    struct digest page; /* its names and ids */
    bool deletes;       /* the API says that it has deleted some of it */
    bool empty;         /* it had no entries */
};

struct storage_walk storage_walk_new(void)
{
    return (struct storage_walk){.path = buf_new(PATH_BYTES), .folders = buf_new(FOLDERS_BYTES)};
}

void storage_walk_free(struct storage_walk *w)
{
    buf_free(&w->path);
    buf_free(&w->folders);
    arena_free(w->page);
    free(w->levels);
    *w = (struct storage_walk){0};
}

static struct storage_level *top(const struct storage_walk *w)
{
    return &w->levels[w->depth - 1];
}

static enum err enter(struct storage_walk *w, struct str name, const char *slash)
{
    if (w->depth == LEVELS_MAX)
        return ERR_FULL;
    if (w->depth == w->capacity) {
        size_t capacity = w->capacity ? 2 * w->capacity : 16;
        struct storage_level *more = realloc(w->levels, capacity * sizeof *more);
        if (!more)
            return ERR_MEMORY;
        w->levels = more;
        w->capacity = capacity;
    }
    buf_add(&w->path, name);
    buf_addz(&w->path, slash);
    w->levels[w->depth++] = (struct storage_level){
        .path_len = w->path.len, .from = w->folders.len, .next = w->folders.len, .listed_at = -1};
    return w->path.failed ? ERR_FULL : OK;
}

static void leave(struct storage_walk *w)
{
    const struct storage_level *gone = top(w);
    bool stays = gone->skip > 0;
    w->folders.len = gone->from;
    w->depth--;
    w->path.len = w->depth ? top(w)->path_len : 0;
    if (w->depth)
        top(w)->stays += stays;
    else
        w->left = stays;
}

enum err storage_walk_begin(struct storage_walk *w, struct str root)
{
    buf_clear(&w->path);
    buf_clear(&w->folders);
    w->depth = 0;
    w->deleted = 0;
    w->left = false;
    return enter(w, root, "");
}

struct str storage_walk_folder(const struct storage_walk *w)
{
    return (struct str){w->path.at, w->path.len};
}

int64_t storage_walk_offset(const struct storage_walk *w)
{
    return top(w)->skip;
}

/* An entry without an id is a folder. */
static enum err take_entry(struct storage_walk *w, const json_t *entry)
{
    struct str name;
    const json_t *id = json_object_get(entry, "id");
    if (json_get_str(entry, "name", &name))
        return ERR_INPUT;
    if (!id || json_is_null(id)) {
        buf_add(&w->folders, name);
        buf_add(&w->folders, (struct str){"", 1});
        return w->folders.failed;
    }
    struct str whole = arena_printf(w->page, "%.*s%s", STR_ARGS(storage_walk_folder(w)), name.at);
    w->names[w->name_count++] = whole;
    return whole.at ? OK : ERR_MEMORY;
}

static enum err take_page(struct storage_walk *w, const json_t *entries)
{
    size_t count = json_array_size(entries);
    arena_free(w->page);
    if (!(w->page = arena_new(4096, PAGE_BYTES)) || !(w->names = arena_take(w->page, count * sizeof *w->names)))
        return ERR_MEMORY;
    for (size_t i = 0; i < count; i++) {
        enum err e = take_entry(w, json_array_get(entries, i));
        if (e)
            return e;
    }
    return OK;
}

/* Times and sizes are left out: they may change while nothing else does. */
static enum err digest_page(const json_t *entries, struct digest *ret)
{
    AUTO(buf) struct buf text = buf_new(PAGE_BYTES);
    struct json_writer out = json_to(&text);
    json_open(&out, '[');
    for (size_t i = 0; i < json_array_size(entries); i++) {
        const json_t *entry = json_array_get(entries, i);
        json_str(&out, str_of(json_string_value(json_object_get(entry, "name"))));
        json_str(&out, str_of(json_string_value(json_object_get(entry, "id"))));
    }
    json_close(&out, ']');
    struct str whole = buf_str(&text);
    if (!whole.at)
        return ERR_MEMORY;
    *ret = digest_sha256(whole);
    return OK;
}

enum err storage_walk_take(struct storage_walk *w, struct str answer)
{
    struct storage_level *l = top(w);
    struct digest page;
    AUTO(json) json_t *entries = json_read_array(answer, NULL);
    enum err e = entries ? digest_page(entries, &page) : ERR_INPUT;
    w->name_count = 0;
    if (e)
        return e;
    bool same = l->listed_at >= 0 && digest_eq(&page, &l->page), moved = l->skip != l->listed_at;
    l->empty = json_array_size(entries) == 0;
    if (!l->empty && same && (moved || l->deletes))
        return ERR_CONFLICT;
    l->page = page;
    l->listed_at = l->skip;
    l->deletes = false;
    if (!l->empty && same) /* it was dealt with: what it lists stays */
        l->stays = (int64_t)json_array_size(entries);
    return l->empty || same ? OK : take_page(w, entries);
}

enum err storage_walk_took(struct storage_walk *w, struct str answer, int64_t *ret_deleted)
{
    AUTO(json) json_t *gone = json_read_array(answer, NULL);
    int64_t count = 0;
    if (!gone)
        return ERR_INPUT;
    for (size_t i = 0; i < json_array_size(gone); i++) {
        struct str name;
        size_t k = 0;
        if (json_get_str(json_array_get(gone, i), "name", &name))
            continue;
        while (k < w->name_count && !str_eq(name, w->names[k]))
            k++;
        if (k == w->name_count)
            continue;
        w->names[k].at = NULL; /* counted once */
        count++;
    }
    top(w)->stays += (int64_t)w->name_count - count;
    top(w)->deletes = count > 0;
    w->deleted += count;
    w->name_count = 0;
    *ret_deleted = count;
    return OK;
}

enum err storage_walk_on(struct storage_walk *w, bool *ret_over)
{
    struct storage_level *l = top(w);
    *ret_over = false;
    if (l->empty) {
        leave(w);
        *ret_over = w->depth == 0;
        if (*ret_over)
            return OK;
        l = top(w);
    }
    if (l->next < w->folders.len) {
        struct str name = str_of(w->folders.at + l->next);
        l->next += name.len + 1;
        return enter(w, name, "/");
    }
    l->skip += l->stays;
    l->stays = 0;
    w->folders.len = l->next = l->from;
    return OK;
}
