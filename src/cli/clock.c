/* `reclaim clock`: the clock of a sandbox. */
#include <string.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "sandbox/clock.h"
#include "server/database.h"

enum clock_verb { CLOCK_SHOW, CLOCK_ADVANCE, CLOCK_RESET };
struct clock_input {
    enum clock_verb verb;
    int64_t by_ms;
};

#define ADVANCE_NS (60 * NS_PER_S)
#define CONFLICTS_MAX 5

enum err clock_read(struct command_context *c)
{
    struct clock_input *in = arena_take(c->arena, sizeof *in);
    if (!in)
        return why_set(&c->why, ERR_MEMORY, "no memory");
    c->input = in;
    const char *verb = word(c, 0);
    in->verb = strcmp(verb, "advance") == 0 ? CLOCK_ADVANCE : strcmp(verb, "reset") == 0 ? CLOCK_RESET : CLOCK_SHOW;
    bool by_given = in->verb == CLOCK_ADVANCE;
    if ((in->verb == CLOCK_SHOW && c->word_count > 0) || (c->word_count == 2 && !by_given))
        return why_set(&c->why, ERR_INPUT, "say advance DURATION, reset, or nothing (see reclaim clock --help)");
    if (by_given &&
        (str_to_duration_ms(str_of(word(c, 1)), &in->by_ms) || in->by_ms <= 0 || in->by_ms > SANDBOX_SHIFT_MOST_MS))
        return why_set(&c->why, ERR_INPUT,
                       "advance takes a duration up to " SANDBOX_SHIFT_MOST
                       " with its unit: ms, s, m, h or d, such as 29d");
    return OK;
}

static enum err fault(struct command_context *c, enum err e)
{
    return why_set(&c->why, e,
                   "the clock cannot be reached (%s %s); is the schema up to date (reclaim migrate), and may this role "
                   "UPDATE (sandbox, clock_shift, clock_moved_at) of reclaim.installation?",
                   err_name(e), pg_fault(c->pg)->sqlstate);
}

static enum err refuse(struct command_context *c, enum sandbox_outcome outcome, const char *what)
{
    switch (outcome) {
    case SANDBOX_OK:
        return OK;
    case SANDBOX_NONE:
        return why_set(&c->why, ERR_INPUT,
                       "this installation is no sandbox: its clock is the real time. Servers with RECLAIM_SANDBOX=on "
                       "make it one where no customers were deleted; try reclaim serve --demo");
    case SANDBOX_TOO_FAR:
        return why_set(&c->why, ERR_INPUT,
                       "the clock of a sandbox can be up to " SANDBOX_SHIFT_MOST " ahead of the real time");
    case SANDBOX_DATED_AHEAD:
        break;
    }
    return why_set(&c->why, ERR_INPUT,
                   "the clock stays as it is: %s since it was moved, and those dates would lie in the future", what);
}

static enum err audit(struct command_context *c, int64_t ms)
{
    return sandbox_audit(c->pg, &(struct clock_mover){.actor = "operator"}, ms, clock_ns() + DATABASE_DEADLINE_NS);
}

/* A step that lost to another transaction is tried again; those before it stay. */
static enum err advance(struct command_context *c, int64_t left_ms)
{
    struct reminder_times reminders = {0};
    reminder_times_set(&reminders, c->settings->reminders.at_ms, c->settings->reminders.count);
    enum sandbox_outcome outcome = SANDBOX_OK;
    enum err e = ERR_CONFLICT;
    int64_t asked_ms = left_ms;
    for (int tries = 0; e == ERR_CONFLICT && tries < CONFLICTS_MAX; tries++)
        e = sandbox_advance(c->pg, &left_ms, &reminders, clock_ns() + ADVANCE_NS, &outcome);
    if (!e && asked_ms > left_ms)
        e = audit(c, asked_ms - left_ms);
    return e ? fault(c, e) : refuse(c, outcome, NULL);
}

static enum err reset(struct command_context *c)
{
    char what[64] = "";
    enum sandbox_outcome outcome = SANDBOX_OK;
    enum err e = ERR_CONFLICT;
    for (int tries = 0; e == ERR_CONFLICT && tries < CONFLICTS_MAX; tries++)
        e = sandbox_reset(c->pg, clock_ns() + DATABASE_DEADLINE_NS, &outcome, what);
    if (!e && !outcome)
        e = audit(c, 0);
    return e ? fault(c, e) : refuse(c, outcome, what);
}

static const struct report_column columns[] = {
    {.name = "sandbox"},
    {.name = "real"},
    {.name = "shift", .where = IN_TABLE},
    {.name = "shift_ms", .kind = REPORT_NUMBER, .where = IN_DATA},
    {.name = "now"},
};
static const struct report_shape clock_shape = {columns, COUNT_OF(columns), true, "-", NULL};

static enum err print(struct command_context *c)
{
    struct sandbox_clock clock;
    enum err e = sandbox_read(c->pg, clock_ns() + DATABASE_DEADLINE_NS, &clock);
    if (e)
        return fault(c, e);
    AUTO(buf) struct buf shift = buf_new(128);
    sandbox_write_shift(clock.shift_ms, &shift);
    AUTO(report) struct report *r = report_new(&clock_shape, c->format);
    report_text(r, clock.is_sandbox ? STR("on") : STR("off"));
    report_text(r, str_of(clock.real));
    report_text(r, buf_str(&shift));
    report_number(r, clock.shift_ms);
    report_text(r, str_of(clock.now));
    return report_print(r, &c->why);
}

enum err clock_command(struct command_context *c)
{
    const struct clock_input *in = c->input;
    enum err e = in->verb == CLOCK_ADVANCE ? advance(c, in->by_ms) : in->verb == CLOCK_RESET ? reset(c) : OK;
    return e ? e : print(c);
}
