#include "proof/read_journal.h"

#include <stdlib.h>
#include <string.h>

#include "proof/digest_set.h"
#include "proof/journal.h"

/* A line is verified by its own signature, or by being named by the next line: so one signature serves a whole chain, and a line
 * waits until the next one has been read. */
struct journal_walk {
    struct journal_reading *r;
    struct why *why;
    const char *folder;
    struct digest_set seen, named; /* lines, and those that another one names */
    size_t seen_and_named;
    struct unresolved { /* lines whose predecessor was not there yet: one that was lost is copied again, behind them */
        struct digest previous;
        char file[32];
        int64_t number;
    } * unresolved;
    struct digest removed; /* the line before the first one, which was removed since it was too old */
    bool has_removed;
    size_t unresolved_count, unresolved_room;
    char first[INSTALLATION_ID_LEN + 1];
    bool waits;
    struct journal_line line;
    char *text;
    size_t len;
    char file[32];
    int64_t number;
};

static enum err refuse(struct journal_walk *x, enum err e, const char *file, int64_t number, const char *what)
{
    return why_set(x->why, e, "the journal \"%s\" cannot be used: %s, line %lld: %s", x->folder, file,
                   (long long)number, what);
}

static enum err check_waiting(struct journal_walk *x, const struct journal_line *next)
{
    struct why inner;
    if (!x->waits)
        return OK;
    bool named = next && next->has_previous && digest_eq(&next->previous, &x->line.hash);
    enum err e = named ? OK : journal_line_verify((struct str){x->text, x->len}, x->r->keys, &x->line, &inner);
    if (e)
        return refuse(x, e, x->file, x->number, inner.text);
    if (x->line.generation > x->r->generation)
        x->r->generation = x->line.generation;
    return x->r->each ? x->r->each(x->r->context, &x->line, (struct str){x->text, x->len}) : OK;
}

static void drop_waiting(struct journal_walk *x)
{
    if (x->waits)
        journal_line_cleanup(&x->line);
    free(x->text);
    x->text = NULL;
    x->waits = false;
}

/* The line before this one, or the one that a restore merges. */
static enum err note_named(struct journal_walk *x, const struct digest *named)
{
    if (digest_set_has(&x->named, named))
        return OK;
    x->seen_and_named += digest_set_has(&x->seen, named);
    return digest_set_add(&x->named, named);
}

static enum err note_seen(struct journal_walk *x, const struct digest *hash)
{
    if (digest_set_has(&x->seen, hash))
        return OK;
    x->seen_and_named += digest_set_has(&x->named, hash);
    return digest_set_add(&x->seen, hash);
}

static enum err note_unresolved(struct journal_walk *x, const struct digest *previous,
                                const struct journal_place *place)
{
    if (x->unresolved_count == x->unresolved_room) {
        size_t room = x->unresolved_room ? 2 * x->unresolved_room : 16;
        struct unresolved *grown = reallocarray(x->unresolved, room, sizeof *grown);
        if (!grown)
            return why_set(x->why, ERR_MEMORY, "no memory to read the journal");
        x->unresolved = grown;
        x->unresolved_room = room;
    }
    struct unresolved *one = &x->unresolved[x->unresolved_count++];
    *one = (struct unresolved){.previous = *previous, .number = place->number};
    return str_copy(str_of(place->file), one->file, sizeof one->file);
}

static enum err check_place(struct journal_walk *x, const struct journal_line *line, const struct journal_place *place)
{
    const char *installation = x->r->installation ? x->r->installation : x->first;
    if (!x->r->installation && !*x->first)
        memcpy(x->first, line->installation, sizeof x->first);
    if (strcmp(line->installation, installation) != 0)
        return refuse(
            x, ERR_INPUT, place->file, place->number,
            "it belongs to another installation: set RECLAIM_JOURNAL to a folder of this one's, or move it away");
    bool begins = place->first_file && place->number == 1;
    if (begins && line->has_previous)
        x->removed = line->previous, x->has_removed = true;
    struct digest merges;
    const char *hex = json_string_value(json_object_get(line->claims, "merges"));
    bool has_merges = hex && line->kind == JOURNAL_RESTORE && digest_parse(str_of(hex), &merges) == OK;
    enum err e = OK;
    if (line->has_previous && !digest_set_has(&x->seen, &line->previous) && !begins)
        e = note_unresolved(x, &line->previous, place);
    if (!e && has_merges && !digest_set_has(&x->seen, &merges))
        e = note_unresolved(x, &merges, place);
    if (!e && line->has_previous)
        e = note_named(x, &line->previous);
    return !e && has_merges ? note_named(x, &merges) : e;
}

/* Where lines were removed since they were too old, a restore explains one gap: after it lines follow the one that was the last in the
 * backup, and so do those that were lost. Each line but the last is named all the same, by the next one or by the restore: where a
 * line was cut out, that before it is not. */
static enum err check_unresolved(struct journal_walk *x)
{
    AUTO(digest_set) struct digest_set gaps = {0};
    bool has_cut = x->seen.count > x->seen_and_named + 1;
    for (size_t i = 0; i < x->unresolved_count; i++) {
        const struct unresolved *one = &x->unresolved[i];
        if (digest_set_has(&x->seen, &one->previous) || (x->has_removed && digest_eq(&one->previous, &x->removed)))
            continue;
        enum err e = digest_set_add(&gaps, &one->previous);
        if (e)
            return why_set(x->why, e, "no memory to read the journal");
        if (!x->has_removed || has_cut || gaps.count > (size_t)x->r->of_kind[JOURNAL_RESTORE])
            return refuse(x, ERR_INPUT, one->file, one->number, "the line before it is missing");
    }
    return OK;
}

static enum err keep_waiting(struct journal_walk *x, const struct journal_line *line, const struct journal_place *place,
                             struct str text)
{
    x->text = malloc(text.len + 1);
    if (!x->text)
        return why_set(x->why, ERR_MEMORY, "no memory to read the journal");
    memcpy(x->text, text.at, text.len);
    x->text[text.len] = '\0';
    x->len = text.len;
    x->line = *line;
    x->line.claims = json_incref(line->claims);
    x->waits = true;
    x->number = place->number;
    x->r->lines++;
    x->r->of_kind[line->kind]++;
    if (line->epoch > x->r->epoch)
        x->r->epoch = line->epoch;
    if (str_copy(str_of(place->file), x->file, sizeof x->file))
        x->file[0] = '\0';
    return note_seen(x, &line->hash);
}

static enum err read_line(void *context, const struct journal_place *place, struct str text)
{
    struct journal_walk *x = context;
    struct journal_line line;
    struct why inner;
    enum err e = journal_line_read(text, &line, &inner);
    if (e)
        return refuse(x, e, place->file, place->number, inner.text);
    e = check_waiting(x, &line);
    drop_waiting(x);
    if (!e)
        e = check_place(x, &line, place);
    if (!e)
        e = keep_waiting(x, &line, place, text);
    journal_line_cleanup(&line);
    return e;
}

enum err journal_read(const char *folder, struct journal_reading *r, struct why *why)
{
    struct journal_walk x = {.r = r, .why = why, .folder = folder};
    r->lines = r->epoch = 0;
    r->generation = 0;
    memset(r->of_kind, 0, sizeof r->of_kind);
    enum err e = journal_each(folder, read_line, &x, why);
    if (!e)
        e = check_waiting(&x, NULL);
    if (!e)
        e = check_unresolved(&x);
    free(x.unresolved);
    drop_waiting(&x);
    digest_set_cleanup(&x.seen);
    digest_set_cleanup(&x.named);
    return e;
}
