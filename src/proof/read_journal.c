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
    struct digest_set seen;
    struct unresolved { /* lines whose predecessor was not there yet: one that was lost is copied again, behind them */
        struct digest previous;
        char file[32];
        int64_t number;
        bool may_be_gone; /* with files that were removed */
    } * unresolved;
    struct digest removed; /* the line before the first one */
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
    *one = (struct unresolved){
        .previous = *previous, .number = place->number, .may_be_gone = place->first_file && !place->whole};
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
        x->removed = line->previous;
    return line->has_previous && !digest_set_has(&x->seen, &line->previous) && !begins
               ? note_unresolved(x, &line->previous, place)
               : OK;
}

/* Where files were removed a line that goes on after a restore may name the same one as the first line does, or another that is gone. */
static bool is_gone(const struct journal_walk *x, const struct unresolved *one)
{
    return one->may_be_gone && (digest_eq(&one->previous, &x->removed) || x->r->of_kind[JOURNAL_RESTORE] > 0);
}

static enum err check_unresolved(struct journal_walk *x)
{
    for (size_t i = 0; i < x->unresolved_count; i++)
        if (!digest_set_has(&x->seen, &x->unresolved[i].previous) && !is_gone(x, &x->unresolved[i]))
            return refuse(x, ERR_INPUT, x->unresolved[i].file, x->unresolved[i].number,
                          "the line before it is missing");
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
    return digest_set_add(&x->seen, &line->hash);
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
    return e;
}
