/* The arguments of a subcommand, read by its rules. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include "cli/command.h"

extern const struct option_rule config_option, format_option; /* what command_run adds to a command's own */

/* Fills in the words and the options of `c`, --config and --format included where the command takes them. Anything else is
 * ERR_INPUT, with a line on stderr. Moves the words to the beginning of argv. */
enum err options_read(struct command_context *c, int argc, char **argv) MUST_CHECK;

#endif
