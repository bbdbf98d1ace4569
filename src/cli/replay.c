/* `reclaim replay-erasures` after a restored backup, and `reclaim journal`, for keeping the journal elsewhere. */
#include "erasure/replay.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "erasure/journal_keeper.h"
#include "proof/read_journal.h"

#define IMPORT_NS (600 * NS_PER_S)
#define LINES_AT_ONCE 1000

static const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

/* Takes the lines of a journal that the database lacks. */
static enum err take_journal(struct command_context *c, const struct proof_keys *keys, const char *from,
                             int64_t *ret_lost)
{
    enum err e =
        journal_import(from, keys, c->settings->backup_retention_ms, c->pg, clock_ns() + IMPORT_NS, ret_lost, &c->why);
    return e && !*c->why.text ? why_set(&c->why, e, "the journal \"%s\" cannot be compared (%s)", from, err_name(e))
                              : e;
}

enum err command_look_at_journal(struct command_context *c)
{
    bool ahead;
    int64_t lost;
    enum err e = journal_is_ahead(c->settings->journal, c->pg, clock_ns() + IMPORT_NS, &ahead, &c->why);
    if (e == ERR_DATABASE) { /* the schema is older: the command itself says so */
        c->why.text[0] = '\0';
        return OK;
    }
    struct proof_keys *keys = e || !ahead ? NULL : arena_take(c->arena, sizeof *keys);
    if (!keys)
        return e || !ahead ? e : why_set(&c->why, ERR_MEMORY, "no memory");
    e = command_proof_keys(c, keys);
    if (!e)
        e = take_journal(c, keys, c->settings->journal, &lost);
    proof_keys_wipe(keys);
    return e;
}

static void show_progress(void *context, int64_t done, int64_t of)
{
    (void)context;
    enum { WIDTH = 40 };
    int filled = of ? (int)(WIDTH * done / of) : WIDTH;
    fprintf(stderr, "\r[%.*s%.*s] %lld of %lld erasures", filled, "########################################",
            WIDTH - filled, "                                        ", (long long)done, (long long)of);
    if (done >= of)
        fputc('\n', stderr);
}

static void print_result(const struct replay *r)
{
    printf("Erased again: %lld customer%s that the backup had brought back; %lld that it did not have.\n",
           (long long)r->erased, plural(r->erased), (long long)r->absent);
    printf("Ended: %lld code%s, %lld session%s, %lld API key%s. Dropped: %lld waiting mail%s.\n", (long long)r->codes,
           plural(r->codes), (long long)r->sessions, plural(r->sessions), (long long)r->api_keys, plural(r->api_keys),
           (long long)r->mails, plural(r->mails));
    printf("Events now have epoch %lld; %lld of changes around the backup and since %s published again.\n"
           "Running servers erase these customers in every participant: see reclaim cascade status.\n",
           (long long)r->epoch, (long long)r->events, r->events == 1 ? "is" : "are");
    printf("Moved: %lld deletion date%s of frozen customers, who have a week at least to recover again.\n"
           "Lost: freezes, recoveries and legal holds since the backup. Make them again.\n",
           (long long)r->dates, plural(r->dates));
}

static enum err replay(struct command_context *c, const struct proof_keys *keys)
{
    const char *from = option(c, "--journal") ? option(c, "--journal") : c->settings->journal;
    int64_t lost;
    bool needed;
    enum err e = take_journal(c, keys, from, &lost);
    if (e)
        return e;
    if ((e = replay_is_needed(c->pg, clock_ns() + IMPORT_NS, &needed)))
        return why_set(&c->why, e, "reclaim.installation cannot be read (%s)", err_name(e));
    if (!needed) {
        printf("The database has every line of the journal: there is nothing to replay.\n");
        return OK;
    }
    struct replay r = {.pg = c->pg,
                       .keys = keys,
                       .keeps_keys = option(c, "--keep-keys") != NULL,
                       .progress = isatty(STDERR_FILENO) ? show_progress : NULL};
    if ((e = replay_erasures(&r, &c->why)))
        return e;
    print_result(&r);
    if (r.failed)
        return why_set(
            &c->why, ERR_DATABASE,
            "%lld erasure%s could not be replayed, the first of customer %s (SQLSTATE %s): mend what keeps it "
            "from being deleted, and run this again. Until then nothing is mailed, charged or deleted",
            (long long)r.failed, plural(r.failed), r.failed_customer, r.sqlstate);
    return OK;
}

enum err replay_command(struct command_context *c)
{
    struct proof_keys *keys = arena_take(c->arena, sizeof *keys);
    enum err e = keys ? command_proof_keys(c, keys) : why_set(&c->why, ERR_MEMORY, "no memory");
    if (!e)
        e = replay(c, keys);
    if (keys)
        proof_keys_wipe(keys);
    return e;
}

/* journal */

static const struct statement journal_export_lines = {
    .name = "journal_export_lines",
    .sql = "SELECT id, line FROM reclaim.journal_lines WHERE id > $1::int8 ORDER BY id LIMIT $2::int8",
    .params = 2,
    .columns = "id:int8 line:text",
};

enum err journal_command_read(struct command_context *c)
{
    bool exports = strcmp(word(c, 0), "export") == 0;
    if (!exports && strcmp(word(c, 0), "import") != 0 && strcmp(word(c, 0), "verify") != 0)
        return why_set(&c->why, ERR_INPUT, "say journal export, import PATH or verify");
    if (strcmp(word(c, 0), "import") == 0 && !*word(c, 1))
        return why_set(&c->why, ERR_INPUT, "say which file or folder to import");
    return OK;
}

static enum err export_lines(struct command_context *c)
{
    FILE *out = *word(c, 1) ? fopen(word(c, 1), "wxe") : stdout;
    int64_t after = 0, count = 0;
    enum err e = out ? OK : why_set(&c->why, ERR_SYSTEM, "cannot write \"%s\": %m; it must not exist yet", word(c, 1));
    for (int rows = LINES_AT_ONCE; !e && rows == LINES_AT_ONCE;) {
        struct pg_call call = {.ask = &journal_export_lines, .args = {pg_i64(after), pg_i64(LINES_AT_ONCE)}};
        if ((e = command_ask(c, &call)))
            break;
        rows = call.rows;
        for (int i = 0; i < rows; i++) {
            after = pg_get_i64(&call, i, 0);
            count++;
            if (fprintf(out, "%s\n", pg_get(&call, i, 1).at) < 0)
                e = why_set(&c->why, ERR_SYSTEM, "cannot write the journal: %m");
        }
    }
    if (out && out != stdout && (fflush(out) != 0 || fsync(fileno(out)) != 0 || fclose(out) != 0) && !e)
        e = why_set(&c->why, ERR_SYSTEM, "cannot write \"%s\": %m", word(c, 1));
    if (!e)
        fprintf(stderr, "%lld line%s\n", (long long)count, plural(count));
    return e;
}

static enum err import_lines(struct command_context *c, const struct proof_keys *keys)
{
    int64_t lost;
    enum err e = take_journal(c, keys, word(c, 1), &lost);
    if (e)
        return e;
    if (lost == 0)
        printf("The database has every line of it.\n");
    else
        printf("%lld line%s that the database lacked: it was restored from a backup. Nothing is mailed, charged or "
               "deleted\n"
               "now; run reclaim replay-erasures.\n",
               (long long)lost, plural(lost));
    return OK;
}

static enum err verify_lines(struct command_context *c, const struct proof_keys *keys)
{
    const char *from = *word(c, 1) ? word(c, 1) : c->settings->journal;
    struct journal_reading r = {.keys = keys};
    enum err e = journal_read(from, &r, &c->why);
    if (e)
        return *c->why.text ? e : why_set(&c->why, e, "\"%s\" cannot be read (%s)", from, err_name(e));
    printf("%lld line%s, all signed and in order: %lld erasure%s, %lld head%s of the sealed log, %lld restore%s.\n",
           (long long)r.lines, plural(r.lines), (long long)r.of_kind[JOURNAL_ERASURE],
           plural(r.of_kind[JOURNAL_ERASURE]), (long long)r.of_kind[JOURNAL_HEAD], plural(r.of_kind[JOURNAL_HEAD]),
           (long long)r.of_kind[JOURNAL_RESTORE], plural(r.of_kind[JOURNAL_RESTORE]));
    return OK;
}

enum err journal_command(struct command_context *c)
{
    struct proof_keys *keys = arena_take(c->arena, sizeof *keys);
    enum err e = keys ? command_proof_keys(c, keys) : why_set(&c->why, ERR_MEMORY, "no memory");
    if (!e)
        e = strcmp(word(c, 0), "export") == 0   ? export_lines(c)
            : strcmp(word(c, 0), "import") == 0 ? import_lines(c, keys)
                                                : verify_lines(c, keys);
    if (keys)
        proof_keys_wipe(keys);
    return e;
}
