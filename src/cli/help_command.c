/* `reclaim help` and `reclaim completion`. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/help.h"

const struct command *command_named(const char *name)
{
    for (size_t i = 0; i < command_count; i++)
        if (strcmp(command_table[i].name, name) == 0)
            return &command_table[i];
    return NULL;
}

enum err help_read(struct command_context *c)
{
    if (c->word_count == 0 || strcmp(word(c, 0), "settings") == 0 || command_named(word(c, 0)))
        return OK;
    return why_set(&c->why, ERR_INPUT, "there is no command \"%s\" (reclaim --help lists the commands)", word(c, 0));
}

enum err help_command(struct command_context *c)
{
    if (c->word_count == 0 && option(c, "--man"))
        man_print(command_table, command_count);
    else if (c->word_count == 0)
        help_print_overview(command_table, command_count);
    else if (strcmp(word(c, 0), "settings") != 0)
        help_print_command(command_named(word(c, 0)));
    else if (option(c, "--markdown"))
        settings_print_markdown(stdout);
    else if (option(c, "--ini"))
        settings_print_ini(stdout);
    else if (option(c, "--man"))
        settings_print_man(stdout);
    else
        settings_print_help(stdout);
    return OK;
}

enum err completion_read(struct command_context *c)
{
    const char *shell = word(c, 0);
    if (strcmp(shell, "bash") == 0 || strcmp(shell, "zsh") == 0 || strcmp(shell, "fish") == 0)
        return OK;
    return why_set(&c->why, ERR_INPUT, "for which shell: bash, zsh or fish?");
}

enum err completion_command(struct command_context *c)
{
    return completion_print(word(c, 0), command_table, command_count);
}
