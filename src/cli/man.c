/* `reclaim help --man`: reclaim(1), made from the table of commands. */
#include <stdio.h>

#include "cli/help.h"
#include "cli/options.h"
#include "text/roff.h"

static void print_text(const char *text)
{
    roff_print(stdout, text);
}

static void print_option(const struct option_rule *rule)
{
    printf(".TP\n.B ");
    print_text(rule->name);
    if (rule->value) {
        printf(" \\fI");
        print_text(rule->value);
        printf("\\fP");
    }
    printf("\n");
    print_text(rule->help);
    printf("\n");
}

static void print_command(const struct command *command)
{
    const struct option_rule *own = command->options;
    printf(".SS \"reclaim %s", command->name);
    if (command->usage[0])
        printf(" ");
    print_text(command->usage);
    printf("\"\n");
    print_text(command->summary);
    printf("\n.PP\n.nf\n");
    print_text(command->help);
    printf(".fi\n");
    for (int i = 0; own && own[i].name; i++)
        print_option(&own[i]);
    if (command->needs & NEEDS_FORMAT)
        print_option(&format_option);
}

void man_print(const struct command *commands, size_t count)
{
    printf(
        ".TH RECLAIM 1 \"\" \"Reclaim " RECLAIM_VERSION "\" \"User Commands\"\n"
        ".SH NAME\nreclaim \\- registration recovery and account deletion beside PostgreSQL\n"
        ".SH SYNOPSIS\n.B reclaim\n.I command\n[\\fIoption\\fP ...] [\\fB\\-\\-config\\fP \\fIfile\\fP]\n"
        ".SH DESCRIPTION\n"
        "A server beside a PostgreSQL database with Supabase Auth's users. It lets people delete registrations that\n"
        "they never finished, with a mailed code, and deletes accounts after a time of grace.\n"
        ".SH COMMANDS\n");
    for (size_t i = 0; i < count; i++)
        print_command(&commands[i]);
    printf(".SH EXIT STATUS\n0 done, 1 failed, 2 not understood.\n"
           ".SH SEE ALSO\n.BR reclaim.ini (5)\n");
}
