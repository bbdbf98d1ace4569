/* What `reclaim --help` and `reclaim help COMMAND` print. */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include "cli/command.h"

/* table.c */
extern const struct command command_table[];
extern const size_t command_count;
const struct command *command_named(const char *name); /* NULL: there is none */

/* Every command on a line, by its group; one screen of 80 columns and 44 lines. */
void help_print_overview(const struct command *commands, size_t count);
void help_print_command(const struct command *command);
/* completion.c: the script for a shell; ERR_INPUT when there is none for it. */
enum err completion_print(const char *shell, const struct command *commands, size_t count) MUST_CHECK;
/* man.c: reclaim(1). */
void man_print(const struct command *commands, size_t count);

#endif
