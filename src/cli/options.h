/* What the subcommands share: reading their options and saying what went wrong. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include "base/str.h"

struct option_rule {
    const char *name; /* "--format" */
    bool takes_value;
    const char *value; /* filled in; "" for a flag that was given, NULL when it was not */
};

/* Fills in the rules' values. Anything else is an error that is told on stderr: ERR_INPUT. Up to `words` bare words are
 * left in argv[1…]; their number is returned through ret_words (NULL: none are taken). */
enum err options_read(int argc, char **argv, struct option_rule *rules, size_t count, int words,
                      int *ret_words) MUST_CHECK;

/* "reclaim orphans: why" on stderr; returns the exit code 1. */
int command_failed(const char *command, const struct why *why);

#endif
