/* The program: finds the subcommand (src/cli/table.c) and runs it. */
#include <stdio.h>
#include <string.h>

#include "cli/help.h"

static int refuse_unknown(const char *name)
{
    fprintf(stderr, "reclaim: there is no command \"%s\" (reclaim --help lists the commands)\n", name);
    return 2;
}

static bool is_help(const char *argument)
{
    return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}

static int run(int argc, char **argv)
{
    if (is_help(argv[0])) {
        help_print_overview(command_table, command_count);
        return 0;
    }
    const struct command *command = command_named(argv[0]);
    if (!command)
        return refuse_unknown(argv[0]);
    for (int i = 1; i < argc; i++)
        if (is_help(argv[i])) {
            help_print_command(command);
            return 0;
        }
    return command_run(command, argc, argv);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "reclaim: which command? (reclaim --help lists the commands)\n");
        return 2;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("reclaim %s\n", RECLAIM_VERSION);
        return 0;
    }
    int code = run(argc - 1, argv + 1);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "reclaim: the output could not be written\n");
        return 1;
    }
    return code;
}
