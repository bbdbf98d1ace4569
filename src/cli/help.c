#include "cli/help.h"

#include <stdio.h>
#include <string.h>

#include "cli/options.h"

static const char *const groups[] = {
    [GROUP_RUN] = "Run",
    [GROUP_CUSTOMERS] = "Customers",
    [GROUP_ERASURE] = "Erasure",
    [GROUP_REGISTRATIONS] = "Registrations",
    [GROUP_CREDENTIALS] = "Credentials",
    [GROUP_OPERATE] = "Operate",
};

void help_print_overview(const struct command *commands, size_t count)
{
    printf("Reclaim " RECLAIM_VERSION ": registration recovery and account deletion beside PostgreSQL.\n"
           "Usage: reclaim COMMAND [--config FILE]\n");
    for (size_t group = 0; group < COUNT_OF(groups); group++) {
        printf("%s\n", groups[group]);
        for (size_t i = 0; i < count; i++)
            if (commands[i].group == group)
                printf("  %-15s %s\n", commands[i].name, commands[i].summary);
    }
    printf("Exit codes: 0 done, 1 failed, 2 not understood.\n");
}

static int option_width(const struct option_rule *o)
{
    return (int)(strlen(o->name) + (o->value ? 1 + strlen(o->value) : 0));
}

static void print_option(const struct option_rule *o, int width)
{
    int padding = width - option_width(o);
    printf("  %s%s%s%*s  ", o->name, o->value ? " " : "", o->value ? o->value : "", padding, "");
    for (const char *at = o->help; *at; at++) {
        putchar(*at);
        if (*at == '\n')
            printf("%*s", width + 4, "");
    }
    putchar('\n');
}

void help_print_command(const struct command *command)
{
    const struct option_rule *own = command->options;
    bool config = command->needs & NEEDS_CONFIG, format = command->needs & NEEDS_FORMAT;
    int width = format ? option_width(&format_option) : option_width(&config_option);
    printf("Usage: reclaim %s%s%s%s%s\n\n%s", command->name, command->usage[0] ? " " : "", command->usage,
           format ? " [--format table|csv|json]" : "", config ? " [--config FILE]" : "", command->help);
    for (int i = 0; own && own[i].name; i++)
        if (option_width(&own[i]) > width)
            width = option_width(&own[i]);
    if (own || config || format)
        printf("\n");
    for (int i = 0; own && own[i].name; i++)
        print_option(&own[i], width);
    if (format)
        print_option(&format_option, width);
    if (config)
        print_option(&config_option, width);
}
