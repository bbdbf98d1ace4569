/* A subcommand of `reclaim`: what it takes, what it needs and what it does.
 *
 * src/main.c has the table of them. command_run() reads the arguments, loads the settings, derives the key, opens the
 * database, calls `run`, and repeats it after a conflict. Exit codes: 0 done, 1 failed, 2 not understood. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "base/arena.h"
#include "base/digest.h"
#include "cli/report.h"
#include "pg/pg.h"
#include "settings/settings.h"

enum command_group {
    GROUP_RUN,
    GROUP_CUSTOMERS,
    GROUP_ERASURE,
    GROUP_REGISTRATIONS,
    GROUP_CREDENTIALS,
    GROUP_OPERATE,
};

enum command_need {
    NEEDS_CONFIG = 1,                    /* --config only: the command loads the settings itself */
    NEEDS_SETTINGS = 2 | NEEDS_CONFIG,   /* loaded before `run` */
    NEEDS_DATABASE = 4 | NEEDS_SETTINGS, /* a connection, not through a pooler */
    NEEDS_FORMAT = 8,                    /* prints a list: takes --format table|csv|json */
    STOPS_WHEN_RESTORED = 32,            /* deletes: waits until erasures are replayed */
    RUNS_ONCE = 16,                      /* several transactions: a conflict does not repeat `run` as a whole */
};

struct option_rule {
    const char *name;  /* "--older-than" */
    const char *value; /* what its value is called in the help: "AGE"; NULL for a flag */
    const char *help;
};

#define OPTIONS_MAX 16

struct command_context {
    const struct command *command;
    char **words; /* the arguments that are no options */
    int word_count;
    const char *options[OPTIONS_MAX]; /* by the command's rules; read them with option() */
    const char *config;               /* NULL when not given */
    enum report_format format;
    bool format_given;

    unsigned needs; /* the command's; `read` may clear some for what was asked */
    const char *key_purpose;
    void *input; /* what `read` made of the arguments, in the arena */
    struct arena *arena;
    const struct settings *settings;
    struct pg *pg;
    struct digest key; /* derived for the command's key_purpose */
    struct why why;    /* the sentence for stderr when `read` or `run` fails; empty: already on standard output */
};

struct command {
    const char *name;
    enum command_group group;
    const char *usage; /* without its name, --format and --config */
    const char *summary, *help;
    const struct option_rule *options; /* ends with one without a name; NULL: none */
    int words;                         /* at most */
    const char *verbs;                 /* what its first word can be, with blanks between; NULL: other things */
    unsigned needs;                    /* enum command_need */
    const char *key_purpose;           /* for digest_derive: the key it needs, or NULL */
    /* Checks the arguments before anything is opened; an error ends the command with exit code 2. May be NULL. */
    enum err (*read)(struct command_context *c);
    /* ERR_CONFLICT has it called again, up to 5 times with growing pauses: it prints only after its last statement. */
    enum err (*run)(struct command_context *c);
};

/* The value of an option: "" for a flag that was given, NULL when it was not given. */
const char *option(const struct command_context *c, const char *name);
/* The word at this place, from 0 on; "" when fewer were given. */
const char *word(const struct command_context *c, int at);

/* A text for --reason: not empty, of at most `max` bytes. */
bool is_reason(const char *text, size_t max);
#define KEPT_REASON_MAX 200 /* why something is kept: certificates say it */

/* argv[0] is the command's name. Returns the exit code. */
int command_run(const struct command *command, int argc, char **argv);

/* A trip of one statement with the deadline that commands allow. */
enum err command_ask(struct command_context *c, struct pg_call *call) MUST_CHECK;

#endif
