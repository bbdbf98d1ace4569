/* The subcommands of `reclaim`, and the help for each. */
#include <stdio.h>
#include <string.h>

#include "base/defs.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "server/serve.h"
#include "settings/settings.h"

static int command_serve(int argc, char **argv)
{
    struct option_rule options[] = {{"--config", true, NULL}, {"--demo", false, NULL}};
    if (options_read(argc, argv, options, COUNT_OF(options), 0, NULL))
        return 2;
    return serve(options[0].value, options[1].value != NULL);
}

static int command_help(int argc, char **argv);

static const struct command {
    const char *name, *usage, *summary, *help;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"serve", "serve [--demo] [--config FILE]", "the server; migrates first unless RECLAIM_MIGRATE=off",
     "Listens on RECLAIM_LISTEN for the API and on RECLAIM_OPS_LISTEN for /livez, /readyz and /metrics.\n"
     "Without RECLAIM_DATABASE_URL it makes and runs a private PostgreSQL under RECLAIM_DATA_DIR.\n"
     "\n"
     "  --demo         fills that private database with people to try things on, and keeps their mails, shown at\n"
     "                 /mailbox when RECLAIM_LISTEN is a loopback address; not with RECLAIM_DATABASE_URL\n"
     "  --config FILE  settings from an INI file; the environment wins\n"
     "\n"
     "SIGTERM and SIGINT give the answers that are under way, then stop. SIGHUP reads the settings again.\n",
     command_serve},
    {"migrate", "migrate [--status|--standalone|--down N] [--config FILE]",
     "the schema: up to date, looked at, or taken back",
     "Brings the schema of the database up to date. Safe to run while servers are running or starting.\n"
     "\n"
     "  --status       lists the steps and the set of functions, and when each was applied\n"
     "  --standalone   also creates a minimal auth schema and ownership tables where they are missing\n"
     "  --down N       takes the last N steps back, with the data they hold\n"
     "  --config FILE  settings from an INI file; the environment wins\n",
     command_migrate},
    {"show", "show ID [--config FILE]", "one customer, as JSON",
     "Prints the customer object of the API.\n"
     "\n"
     "  --config FILE  settings from an INI file; the environment wins\n",
     command_customer},
    {"freeze", "freeze ID [--config FILE]", "schedules a customer's deletion",
     "Freezes the customer: kept out everywhere at once, deleted when RECLAIM_GRACE has passed, until then to be\n"
     "recovered. Repeating it changes nothing. Prints the customer as JSON.\n"
     "\n"
     "  --config FILE  settings from an INI file; the environment wins\n",
     command_customer},
    {"recover", "recover ID [--config FILE]", "takes a freeze back",
     "Makes a frozen customer active again, with everything it had. Prints the customer as JSON; fails when it is not\n"
     "frozen.\n"
     "\n"
     "  --config FILE  settings from an INI file; the environment wins\n",
     command_customer},
    {"delete", "delete ID [--config FILE]", "deletes a customer at once, without grace",
     "Anonymises the customer and has everyone who takes part erase what they have of it, as expiry does. One that "
     "was\n"
     "deleted before: what is unfinished of its erasure is driven again. A legal hold refuses it. Prints the customer "
     "as\n"
     "JSON.\n"
     "\n"
     "  --config FILE  settings from an INI file; the environment wins\n",
     command_removal},
    {"hold", "hold ID --reason TEXT [--config FILE]", "a legal hold: the customer is not deleted while it lasts",
     "Neither expiry nor an admin deletes the customer until reclaim unhold. Prints the customer as JSON.\n"
     "\n"
     "  --reason TEXT  why; kept with the customer and in the audit until it is deleted\n"
     "  --config FILE  settings from an INI file; the environment wins\n",
     command_removal},
    {"unhold", "unhold ID [--config FILE]", "ends a legal hold",
     "From then on the customer is deleted as any other. Prints the customer as JSON.\n"
     "\n"
     "  --config FILE  settings from an INI file; the environment wins\n",
     command_removal},
    {"expire", "expire [--dry-run] [--config FILE]", "one expiry pass now",
     "Deletes every frozen customer whose grace is over, whichever instance leads, and prints {\"processed\":n}. "
     "Running\n"
     "servers then erase what others keep of them.\n"
     "\n"
     "  --dry-run      lists who is due instead\n"
     "  --config FILE  settings from an INI file; the environment wins\n",
     command_expire},
    {"cascade", "cascade add|list|status|redrive [--config FILE]",
     "who erases what of deleted customers, and how far it is",
     "  add NAME --table TABLE --column COLUMN   a table of this database; COLUMN holds the customer's id\n"
     "      [--soft-delete COLUMN]               rows are marked with the time there, not deleted\n"
     "      [--scrub COLUMN,…]                   and these columns of them emptied\n"
     "      [--page ROWS]                        at most so many rows a transaction (1000)\n"
     "      [--past]                             customers deleted before are erased from it too\n"
     "  add NAME --remote                        a service elsewhere, which reports what it did\n"
     "  list                                     the participants, and what is wrong with them\n"
     "  status [CUSTOMER]                        receipts by participant, or one customer's ledger as JSON\n"
     "  redrive [CUSTOMER] [--participant NAME]  has what is unfinished tried again now\n"
     "  --config FILE                            settings from an INI file; the environment wins\n",
     command_cascade},
    {"orphans", "orphans [--older-than AGE] [--format table|csv|json] [--config FILE]",
     "who registered and never finished; a report, deletes nothing",
     "Lists the users of auth.users who have no row in the tables of RECLAIM_OWNERSHIP.\n"
     "\n"
     "  --older-than AGE   only those created at least so long ago, such as 12h or 30d (7d)\n"
     "  --format FORMAT    table, csv or json (table)\n"
     "  --config FILE      settings from an INI file; the environment wins\n",
     command_orphans},
    {"trace", "trace CORRELATION_ID|EMAIL [--config FILE]", "the audit trail of one request or address",
     "Prints what the log of clean-ups knows, oldest first: when, correlation id, step, status, error. Addresses are\n"
     "looked up by their keyed hash, so RECLAIM_SECRET_KEY must be the servers'.\n"
     "\n"
     "  --config FILE  settings from an INI file; the environment wins\n",
     command_trace},
    {"limits", "limits show|reset KEY [--config FILE]", "how often someone asked, and forgetting it",
     "KEY is ip:ADDRESS, email:ADDRESS or global.\n"
     "\n"
     "  show KEY       requests counted in each tier's window, what is left, and how long until one more is let in\n"
     "  reset KEY      forgets them, at every running instance\n"
     "  --config FILE  settings from an INI file; the environment wins\n",
     command_limits},
    {"locks", "locks [--config FILE]", "who holds which cleanup lock",
     "Lists the advisory locks of addresses that are being worked on: the lock's number (reclaim.email_to_lock_id "
     "gives an\n"
     "address's), the server process that holds it, and for how long. To end one, terminate that process:\n"
     "SELECT pg_terminate_backend(pid).\n"
     "\n"
     "  --config FILE  settings from an INI file; the environment wins\n",
     command_locks},
    {"token", "token --role admin|authenticated [--sub UUID] [--ttl AGE] [--config FILE]",
     "a signed token for the API, alone on standard output",
     "Signs a JSON Web Token with a key derived from RECLAIM_SECRET_KEY, or from the key in RECLAIM_DATA_DIR.\n"
     "It is good for Reclaim and its gate only. Whoever has the token can use it until it expires.\n"
     "\n"
     "  --role ROLE    admin may do everything (the claim role is service_role); authenticated is the customer that\n"
     "                 belongs to the user --sub\n"
     "  --sub UUID     the user's id in auth.users\n"
     "  --ttl AGE      how long it is good, such as 15m or 30d (1h)\n"
     "  --config FILE  settings from an INI file; the environment wins\n",
     command_token},
    {"key", "key create|revoke|list [KEY] --customer ID [--name TEXT] [--format table|csv|json] [--config FILE]",
     "API keys of a customer",
     "  create --customer ID   makes a key and prints it alone on standard output, once: only a hash of it is stored\n"
     "  revoke KEY             ends a key, given by its id (as `list` and `create` tell it) or by the key itself; it\n"
     "                         stops working at every instance at once\n"
     "  revoke --customer ID   ends all keys of the customer\n"
     "  list --customer ID     id, beginning, name and times of each, the revoked ones too\n"
     "\n"
     "  --name TEXT            what the key is for, for `list`\n"
     "  --format FORMAT        of `list`: table, csv or json (table)\n"
     "  --config FILE          settings from an INI file; the environment wins\n"
     "\n"
     "Keys are hashed under RECLAIM_SECRET_KEY, which must be the servers'.\n",
     command_key},
    {"events", "events tail|dead|redrive [ID] [--from POSITION] [--format json|table] [--config FILE]",
     "events as they come, and dead letters",
     "  tail           follows the outbox: one CloudEvent a line, from now on\n"
     "  dead           events that no queue was bound for, and receipts that were refused, with the reason\n"
     "  redrive [ID]   publishes them again, all or the one of this id; refused receipts are tried again\n"
     "  --from POSITION  tail: everything behind this position of the outbox; 0 for all that is kept\n"
     "  --format FORMAT  tail: json, or table for a short line each (json)\n"
     "  --config FILE  settings from an INI file; the environment wins\n",
     command_events},
    {"doctor", "doctor [--config FILE]", "checks settings, database, privileges, indexes, broker; says what to fix",
     "Looks at everything Reclaim needs and prints a line for each: ok, warn, or FAIL with what to do about it.\n"
     "Exits with 1 when something failed.\n"
     "\n"
     "  --config FILE  settings from an INI file; the environment wins\n",
     command_doctor},
    {"help", "help [COMMAND|settings [--markdown|--ini]]", "this text, one command's, or all settings",
     "  help COMMAND               what a command does and takes\n"
     "  help settings              every setting, its default and bounds\n"
     "  help settings --markdown   the same as docs/settings.md\n"
     "  help settings --ini        the same as a file for --config, with every default\n",
     command_help},
};

static const struct command *command_named(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(commands); i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static int unknown(const char *word)
{
    fprintf(stderr, "reclaim: there is no command \"%s\" (reclaim --help tells what there is)\n", word);
    return 2;
}

static int print_overview(void)
{
    printf("Reclaim %s: registration recovery and graceful account deletion beside PostgreSQL.\n\nUsage:\n",
           RECLAIM_VERSION);
    for (size_t i = 0; i < COUNT_OF(commands); i++)
        printf("  reclaim %s\n      %s\n", commands[i].usage, commands[i].summary);
    printf("  reclaim --version\n\n"
           "Exit codes: 0 done, 1 failed, 2 not understood.\n\n");
    settings_print_help(stdout);
    return 0;
}

static int print_command(const struct command *command)
{
    printf("Usage: reclaim %s\n\n%s", command->usage, command->help);
    return 0;
}

static int command_help(int argc, char **argv)
{
    struct option_rule options[] = {{"--markdown", false, NULL}, {"--ini", false, NULL}};
    int words;
    if (options_read(argc, argv, options, COUNT_OF(options), 1, &words))
        return 2;
    if (words == 0)
        return print_overview();
    if (strcmp(argv[1], "settings") != 0) {
        const struct command *command = command_named(argv[1]);
        return command ? print_command(command) : unknown(argv[1]);
    }
    if (options[0].value)
        settings_print_markdown(stdout);
    else if (options[1].value)
        settings_print_ini(stdout);
    else
        settings_print_help(stdout);
    return 0;
}

static bool asks_for_help(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    return false;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "reclaim: which command? (reclaim --help tells what there is)\n");
        return 2;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("reclaim %s\n", RECLAIM_VERSION);
        return 0;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return print_overview();
    const struct command *command = command_named(argv[1]);
    if (!command)
        return unknown(argv[1]);
    if (asks_for_help(argc - 1, argv + 1))
        return print_command(command);
    int code = command->run(argc - 1, argv + 1);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "reclaim: the output could not be written\n");
        return 1;
    }
    return code;
}
