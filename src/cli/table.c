/* The table of subcommands, with the help for each. */
#include "cli/commands.h"
#include "cli/help.h"
#include "credentials/access_keys.h"
#include "customers/last_mail.h"
#include "server/serve.h"

#define OPTIONS(...) ((const struct option_rule[]){__VA_ARGS__, {0}})

static enum err serve_command(struct command_context *c)
{
    return serve(c->config, option(c, "--demo") != NULL) ? ERR_SYSTEM : OK; /* it has said why */
}

const struct command command_table[] = {
    {.name = "serve",
     .group = GROUP_RUN,
     .usage = "[--demo]",
     .summary = "the server; migrates first unless RECLAIM_MIGRATE=off",
     .help = "Listens on RECLAIM_LISTEN for the API and on RECLAIM_OPS_LISTEN for /livez, /readyz and /metrics.\n"
             "Without RECLAIM_DATABASE_URL it creates and runs a private PostgreSQL under RECLAIM_DATA_DIR.\n"
             "SIGTERM and SIGINT finish the requests that have begun, then stop. SIGHUP reads the settings again.\n",
     .options = OPTIONS({"--demo", NULL,
                         "fills that private database with people to try things on and keeps their mails,\n"
                         "shown at /mailbox when RECLAIM_LISTEN is a loopback address; not with\n"
                         "RECLAIM_DATABASE_URL"}),
     .needs = NEEDS_CONFIG,
     .run = serve_command},
    {.name = "init",
     .group = GROUP_RUN,
     .usage = "[--supabase URL] --database-url URL [--yes]",
     .summary = "looks at a database and writes the settings of a server",
     .help = "Finds Supabase and a pooler, proposes RECLAIM_OWNERSHIP from the foreign keys to auth.users, and writes "
             "into\n"
             "the folder: reclaim.ini, the master key and the URL in files of their own, the SQL of a role that may do "
             "what\n"
             "the server needs and no more, participants of erasures, and a configuration for nginx. Then it makes the "
             "role\n"
             "and the schema, where the given role may, and says what doctor finds. Without --yes it asks on the "
             "terminal.\n"
             "The URL can also be in the environment, as RECLAIM_DATABASE_URL.\n",
     .options = OPTIONS(
         {"--database-url", "URL",
          "postgresql://user:password@host:port/database, of an administrator such as postgres"},
         {"--direct-url", "URL", "of the PostgreSQL server, where the first goes through a pooler in transaction mode"},
         {"--supabase", "URL", "the project's API (https://REF.supabase.co), whose tokens are accepted"},
         {"--ownership", "COLUMNS", "RECLAIM_OWNERSHIP, instead of what is proposed"},
         {"--role", "NAME", "the server's role, which is made (reclaim)"},
         {"--same-role", NULL, "no role is made: the server connects with the given one"},
         {"--balance", "COLUMN[:micros|cents]", "where an adopted billing_accounts has the balance, as for migrate"},
         {"--output", "DIR", "the folder for the files (the current one)"},
         {"--yes", NULL, "takes what is proposed and never asks"},
         {"--apply", NULL, "makes the role and the schema without asking"},
         {"--files-only", NULL, "writes the files and changes nothing in the database"},
         {"--force", NULL, "writes files anew that exist, but never the master key"}),
     .needs = RUNS_ONCE,
     .read = init_read,
     .run = init_command},
    {.name = "migrate",
     .group = GROUP_RUN,
     .usage = "[--check|--status|--standalone|--down N] [--balance COLUMN]",
     .summary = "brings the schema up to date, lists its steps, takes them back",
     .help = "Brings the schema of the database up to date. Safe to run while servers are running or starting.\n"
             "Tables customer_customers and billing_accounts in schema public are adopted beside their traffic.\n",
     .options = OPTIONS({"--check", NULL,
                         "changes nothing: tells what adopting them would do and how long locks would be held;\n"
                         "exit code 1 when something stops it"},
                        {"--balance", "COLUMN[:micros|cents]",
                         "where billing_accounts has the balance; without a unit, in whole units of the currency"},
                        {"--status", NULL, "lists the steps and the set of functions, and when each was applied"},
                        {"--standalone", NULL, "also creates a minimal auth schema and ownership tables where missing"},
                        {"--down", "N", "takes the last N steps back, with the data they hold"}),
     .needs = NEEDS_DATABASE | NEEDS_FORMAT | RUNS_ONCE,
     .read = migrate_command_read,
     .run = migrate_command},

    {.name = "show",
     .group = GROUP_CUSTOMERS,
     .usage = "ID",
     .summary = "one customer, as JSON",
     .help = "Prints the customer object of the API.\n",
     .words = 1,
     .needs = NEEDS_DATABASE,
     .read = customer_read,
     .run = customer_show_command},
    {.name = "customers",
     .group = GROUP_CUSTOMERS,
     .usage = "list|members|import [ID …|FILE]",
     .summary = "lists and imports customers; members of a customer",
     .help =
         "  list                        customers in the order of their ids, all or those that the options name\n"
         "  members ID                  the users who act for a customer beside its owner\n"
         "  members ID add USER_ID      makes a user of auth.users a member; prints the member as JSON\n"
         "  members ID remove USER_ID   ends a membership, at every gate at once; prints the member as JSON\n"
         "  import --from-users         makes each confirmed user of auth.users who neither owns nor belongs to a\n"
         "                              customer a customer of the same address\n"
         "  import FILE                 customers from CSV; the first line names the columns: name, email,\n"
         "                              owner_user_id. A line that is wrong is named, and nothing is imported.\n"
         "                              Lines that are customers already are skipped.\n"
         "  import --owners [FILE]      gives live customers without an owner the confirmed user of their address, or\n"
         "                              who the CSV file (customer_id,owner_user_id) or --query names\n"
         "\n"
         "import writes batches of 500, each a transaction, and prints {\"imported\":n,\"skipped\":n}.\n",
     .options = OPTIONS({"--status", "STATUS", "list: only those that are active, frozen or deleted"},
                        {"--held", NULL, "list: only those under legal hold"},
                        {"--q", "TEXT", "list: only the one of this id, or whose name or address begins so"},
                        {"--role", "ROLE", "members add: a name for your own programs, such as billing (member)"},
                        {"--from-users", NULL, "import: from auth.users"},
                        {"--owners", NULL, "import: no customers, but owners for those that have none"},
                        {"--query", "SQL", "import --owners: returns customer_id and owner_user_id"},
                        {"--dry-run", NULL, "import: checks everything, counts, and imports nothing"}),
     .words = 4,
     .verbs = "list members import",
     .needs = NEEDS_DATABASE | NEEDS_FORMAT | RUNS_ONCE,
     .read = customers_read,
     .run = customers_command},
    {.name = "freeze",
     .group = GROUP_CUSTOMERS,
     .usage = "ID [--reason TEXT]",
     .summary = "schedules a customer's deletion",
     .help =
         "Freezes the customer: the gate, calls and the API refuse it at once, and it is deleted when RECLAIM_GRACE\n"
         "has passed. Until then reclaim recover takes the freeze back; the customer itself cannot, and one that has\n"
         "frozen itself cannot any more. Repeating it changes nothing else. Prints the customer as JSON.\n",
     .options = OPTIONS({"--reason", "TEXT", "why; shown to administrators only, and kept until it is deleted"}),
     .words = 1,
     .needs = NEEDS_DATABASE,
     .read = customer_read,
     .run = customer_freeze_command},
    {.name = "recover",
     .group = GROUP_CUSTOMERS,
     .usage = "ID",
     .summary = "takes a freeze back",
     .help =
         "Makes a frozen customer active again, with everything it had. Prints the customer as JSON; fails when it\n"
         "is not frozen.\n",
     .words = 1,
     .needs = NEEDS_DATABASE,
     .read = customer_read,
     .run = customer_recover_command},
    {.name = "hold",
     .group = GROUP_CUSTOMERS,
     .usage = "ID --reason TEXT",
     .summary = "a legal hold: the customer is not deleted while it lasts",
     .help = "Neither expiry nor an admin deletes the customer until reclaim unhold. Prints the customer as JSON.\n",
     .options = OPTIONS({"--reason", "TEXT", "why; kept with the customer and in the audit until it is deleted"}),
     .words = 1,
     .needs = NEEDS_DATABASE,
     .read = customer_read,
     .run = customer_hold_command},
    {.name = "unhold",
     .group = GROUP_CUSTOMERS,
     .usage = "ID",
     .summary = "ends a legal hold",
     .help = "From then on the customer is deleted as any other. Prints the customer as JSON.\n",
     .words = 1,
     .needs = NEEDS_DATABASE,
     .read = customer_read,
     .run = customer_hold_command},

    {.name = "delete",
     .group = GROUP_ERASURE,
     .usage = "ID",
     .summary = "deletes a customer at once, without grace",
     .help = "Anonymises the customer and has every participant of the cascade erase what it keeps of it, as expiry\n"
             "does. For a customer that was deleted before, what is unfinished of its erasure is tried again. A legal\n"
             "hold refuses it. Prints the customer as JSON.\n",
     .words = 1,
     .needs = NEEDS_DATABASE | STOPS_WHEN_RESTORED,
     .key_purpose = LAST_MAIL_PURPOSE,
     .read = customer_read,
     .run = customer_delete_command},
    {.name = "expire",
     .group = GROUP_ERASURE,
     .usage = "[--dry-run | --confirm N]",
     .summary = "deletes the customers whose grace is over, now",
     .help = "Runs one expiry pass, whichever instance leads, and prints {\"processed\":n}. Running servers then have\n"
             "the participants of the cascade erase what they keep of these customers. When unusually many became due\n"
             "since the last pass (RECLAIM_EXPIRY_BRAKE), no pass deletes any until --confirm says how many may go.\n",
     .options = OPTIONS({"--dry-run", NULL, "lists who is due instead: a JSON object a line, or --format"},
                        {"--confirm", "N", "deletes however many became due, as long as no more than N are due"}),
     .needs = NEEDS_DATABASE | NEEDS_FORMAT | RUNS_ONCE | STOPS_WHEN_RESTORED,
     .key_purpose = LAST_MAIL_PURPOSE,
     .read = expire_read,
     .run = expire_command},
    {.name = "cascade",
     .group = GROUP_ERASURE,
     .usage = "add|list|status|redrive|rescan|disable|enable|remove [NAME|ID]",
     .summary = "participants of erasures, and how far each is",
     .help =
         "  add NAME --table TABLE --column COLUMN   a table of this database; COLUMN holds the customer's id\n"
         "  add NAME --storage BUCKET                objects of users in Supabase Storage (RECLAIM_STORAGE_URL)\n"
         "  add NAME --remote                        a service elsewhere, which reports what it did\n"
         "  add --preset voip                        the tables of a telephone company's fourteen services; those\n"
         "                                           that are missing or do not fit are named\n"
         "  list                                     the participants, and what is wrong with them\n"
         "  status [ID]                              receipts by participant, or one customer's ledger as JSON\n"
         "  redrive [ID]                             tries what is unfinished again now\n"
         "  rescan [ID]                              has the leader look again at finished customers, for rows that\n"
         "                                           came after the receipt; it also does so 1 hour, 1 day and 30 "
         "days\n"
         "                                           after an erasure\n"
         "  disable|enable|remove NAME               what one that takes no part has not erased is kept, as the\n"
         "                                           ledger says; enabled again, it owes those receipts. --reason\n"
         "                                           says why, for instance by which law, also in certificates\n",
     .options = OPTIONS(
         {"--table", "TABLE", "add: the table"}, {"--column", "COLUMN", "add: its column with the customer's id"},
         {"--by", "customer|user", "add: whose id is there; user: owners and members (customer)"},
         {"--storage", "BUCKET", "add: the bucket"},
         {"--prefix", "FOLDER", "add: where a user's objects are in it, with {user} for the user's id ({user}/)"},
         {"--label", "TEXT", "add: words for people, in the ledger and the preview"},
         {"--preset", "voip", "add: a ready set, with --past or nothing else"},
         {"--soft-delete", "COLUMN", "add: rows are marked with the time there, not deleted"},
         {"--scrub", "COLUMNS", "add: columns of marked rows that are emptied, with commas between; '*': all but keys"},
         {"--page", "ROWS", "add: at most so many rows a transaction (1000)"},
         {"--past", NULL, "add: customers deleted before are erased from it too"},
         {"--remote", NULL, "add: the participant is a service, not a table"},
         {"--participant", "NAME", "redrive: only this one"},
         {"--reason", "TEXT", "disable: why, for ledgers and certificates"}),
     .words = 2,
     .verbs = "add list status redrive rescan disable enable remove",
     .needs = NEEDS_DATABASE | NEEDS_FORMAT,
     .read = cascade_read,
     .run = cascade_command},
    {.name = "columns",
     .group = GROUP_ERASURE,
     .usage = "list | keep TABLE COLUMN [--reason TEXT] | clear TABLE COLUMN",
     .summary = "columns of adopted tables that Reclaim does not know",
     .help =
         "A deletion clears every column of customer_customers and billing_accounts that Reclaim does not know: null\n"
         "where it may be, else the type's neutral value, with the row's id in it where it must be unique. What "
         "cannot\n"
         "be cleared is kept, and the erasure's ledger lists it.\n"
         "\n"
         "  list                these columns, what was decided, and what a deletion does\n"
         "  keep TABLE COLUMN   deletions leave the column as it is; the ledger and the certificate list it as kept\n"
         "                      by decision, with the reason\n"
         "  clear TABLE COLUMN  deletions clear it; doctor then does not ask about it any more\n",
     .options = OPTIONS({"--reason", "TEXT", "keep: why, for instance by which law it has to be kept"}),
     .words = 3,
     .verbs = "list keep clear",
     .needs = NEEDS_DATABASE | NEEDS_FORMAT,
     .read = columns_read,
     .run = columns_command},

    {.name = "verify",
     .group = GROUP_ERASURE,
     .usage = "FILE --key FILE [--address ADDRESS --salt NUMBER]",
     .summary = "checks a certificate of erasure, offline",
     .help = "Checks a certificate with the published key set, and says what it proves and what it does not. Needs no\n"
             "settings and no database; FILE is - for standard input. Exits with 1 when it does not hold.\n",
     .options =
         OPTIONS({"--key", "FILE",
                  "the key set that /.well-known/reclaim-erasure-key and reclaim key-set give, or one of its keys"},
                 {"--address", "ADDRESS", "also checks that the certificate is about this e-mail address"},
                 {"--salt", "NUMBER", "the number in the last mail, which that needs"}),
     .words = 1,
     .read = verify_read,
     .run = verify_command},
    {.name = "key-set",
     .group = GROUP_ERASURE,
     .usage = "[--rotate]",
     .summary = "the public keys that verify certificates",
     .help = "Prints the key set in JSON, to be published where people who verify certificates trust it.\n",
     .options = OPTIONS({"--rotate", NULL, "adds a new key, which signs from now on; the former keys stay in the set"}),
     .needs = NEEDS_DATABASE | RUNS_ONCE,
     .run = key_set_command},
    {.name = "audit",
     .group = GROUP_ERASURE,
     .usage = "verify [--journal PATH]",
     .summary = "whether the sealed log is as it was sealed",
     .help = "Compares audit events, receipts and certificates with the signed heads of the log, lists rows that were\n"
             "changed, removed or inserted, and then exits with 1. What was changed before it was sealed, within some\n"
             "10 seconds of being written, cannot be found.\n",
     .words = 1,
     .options = OPTIONS(
         {"--journal", "PATH", "the journal to compare with, or an export of it; RECLAIM_JOURNAL unless given"}),
     .verbs = "verify",
     .needs = NEEDS_DATABASE | RUNS_ONCE,
     .read = audit_log_read,
     .run = audit_log_command},

    {.name = "journal",
     .group = GROUP_ERASURE,
     .usage = "export [FILE] | import PATH | verify [PATH]",
     .summary = "who was erased, as listed outside the database",
     .help = "  export [FILE]   writes the lines to a new file, or to standard output, for keeping them elsewhere\n"
             "  import PATH     compares a file or folder with the database; lines that it lacks mean that it was\n"
             "                  restored from a backup: then run reclaim replay-erasures\n"
             "  verify [PATH]   whether all lines are signed and in order; PATH is RECLAIM_JOURNAL unless given\n",
     .words = 2,
     .verbs = "export import verify",
     .needs = NEEDS_DATABASE | RUNS_ONCE,
     .read = journal_command_read,
     .run = journal_command},
    {.name = "replay-erasures",
     .group = GROUP_ERASURE,
     .usage = "[--journal PATH] [--keep-keys]",
     .summary = "erases again whom a restored backup brought back",
     .help = "After the database was restored from a backup: erases again, in every participant and without a mail,\n"
             "the customers that the journal lists; ends codes, sessions and API keys, some of which had ended since;\n"
             "raises the epoch of events; leaves frozen customers a week at least. Until then nothing is mailed,\n"
             "charged or deleted. It can be repeated.\n",
     .options = OPTIONS({"--journal", "PATH", "the journal, or an export of it; RECLAIM_JOURNAL unless given"},
                        {"--keep-keys", NULL, "leaves API keys as they were at the time of the backup"}),
     .needs = NEEDS_DATABASE | RUNS_ONCE,
     .run = replay_command},

    {.name = "orphans",
     .group = GROUP_REGISTRATIONS,
     .usage = "[delete USER_ID | purge] [--older-than AGE] [--reason TEXT]",
     .summary = "registrations that were never finished; lists or deletes them",
     .help =
         "Lists the users of auth.users who have no row in the tables of RECLAIM_OWNERSHIP, and changes nothing, "
         "unless\n"
         "told to delete them:\n"
         "\n"
         "  delete USER_ID --reason TEXT   deletes one of them, without a code\n"
         "  purge --older-than AGE         deletes all that are so old, each in a transaction of its own\n"
         "\n"
         "Both lock and check as the clean-up does before it deletes: a user who has company data, belongs to a\n"
         "customer, is banned or signs in by single sign-on is left alone, and so is one of which that cannot be\n"
         "seen for certain. Each deletion has its row in reclaim.auth_cleanup_log, the reason is kept beside it for\n"
         "RECLAIM_AUDIT_RETENTION. delete prints {\"deleted\":1,\"correlation_id\":…} for reclaim trace, purge also "
         "how\n"
         "many were skipped or failed; it exits with 1 when one failed.\n",
     .options = OPTIONS({"--older-than", "AGE",
                         "only those created at least so long ago, such as 12h or 30d (7d; purge: must be given)"},
                        {"--reason", "TEXT", "delete, purge: why, up to 1000 bytes"},
                        {"--dry-run", NULL, "purge: lists whom it would delete"}),
     .words = 2,
     .verbs = "delete purge",
     .needs = STOPS_WHEN_RESTORED | NEEDS_DATABASE | NEEDS_FORMAT,
     .key_purpose = IDENTIFIER_PURPOSE,
     .read = orphans_read,
     .run = orphans_command},
    {.name = "trace",
     .group = GROUP_REGISTRATIONS,
     .usage = "CORRELATION_ID|EMAIL",
     .summary = "the audit trail of one request or address",
     .help =
         "Prints what happened to a request or an address, oldest first: both steps, the mail, and refusals counted "
         "by\n"
         "the minute. An id also finds the other step with the same code. CSV and JSON have the state of the row in\n"
         "auth_cleanup_log as well. Addresses are looked up by their keyed hash, so RECLAIM_SECRET_KEY must be the\n"
         "servers'.\n",
     .words = 1,
     .needs = NEEDS_DATABASE | NEEDS_FORMAT,
     .key_purpose = IDENTIFIER_PURPOSE,
     .read = trace_read,
     .run = trace_command},
    {.name = "locks",
     .group = GROUP_REGISTRATIONS,
     .usage = "",
     .summary = "clean-up locks that are held, and by which process",
     .help = "Lists the advisory locks of addresses that are being worked on: the lock's number\n"
             "(reclaim.email_to_lock_id gives an address's), the process of the database that holds it, and for how\n"
             "long. To end one, terminate that process: SELECT pg_terminate_backend(pid).\n",
     .needs = NEEDS_DATABASE | NEEDS_FORMAT,
     .run = locks_command},

    {.name = "token",
     .group = GROUP_CREDENTIALS,
     .usage = "--role admin|authenticated [--sub UUID] [--ttl AGE]",
     .summary = "a signed token for the API, alone on standard output",
     .help = "Signs a JSON Web Token with a key derived from RECLAIM_SECRET_KEY, or from the key in RECLAIM_DATA_DIR.\n"
             "It is valid for Reclaim and its gate only. Anyone who has the token can use it until it expires: it\n"
             "belongs to no session that could be ended.\n",
     .options = OPTIONS({"--role", "ROLE",
                         "admin may do everything (the claim role is service_role); authenticated is the\n"
                         "customer that belongs to the user --sub"},
                        {"--sub", "UUID", "the user's id in auth.users"},
                        {"--ttl", "AGE", "how long it is valid, such as 15m or 30d (1h)"}),
     .needs = NEEDS_SETTINGS,
     .key_purpose = JWT_OWN_PURPOSE,
     .read = token_read,
     .run = token_command},
    {.name = "key",
     .group = GROUP_CREDENTIALS,
     .usage = "create|rotate|revoke|list [KEY] [--customer ID | --scope SCOPE]",
     .summary = "API keys of customers and of programs",
     .help =
         "  create --customer ID  makes a customer's key and prints it alone on standard output, once: only its\n"
         "                        hash is stored\n"
         "  create --scope SCOPE  makes a key for a program, which reaches nothing but what its scope names:\n"
         "                          admin          everything that administrators reach\n"
         "                          read           everything that administrators can read\n"
         "                          calls          /v1/calls: for a switch\n"
         "                          billing        /v1/billing: for a billing service\n"
         "                          receipts:NAME  receipts of the erasure participant NAME\n"
         "  rotate KEY            makes another key for the same and prints it; the old one works for --grace longer\n"
         "  revoke KEY            ends a key, given by its id (as `list` and `create` print it) or by the key\n"
         "                        itself; it stops working at every instance at once\n"
         "  revoke --customer ID  ends all keys of the customer\n"
         "  list [--customer ID]  id, beginning, scope, name and times of each, the revoked ones too; without\n"
         "                        --customer those with a scope\n"
         "\n"
         "Keys are hashed under RECLAIM_SECRET_KEY, which must be the servers'.\n",
     .options =
         OPTIONS({"--customer", "ID", "whose keys"}, {"--scope", "SCOPE", "what a program's key reaches"},
                 {"--expires", "TIME", "how long the new key works, such as 90d; rotate: as long as the old one"},
                 {"--grace", "TIME", "how long the old key works beside the new one; 24h unless given"},
                 {"--name", "TEXT", "what the key is for, for `list`"}),
     .words = 2,
     .verbs = "create rotate revoke list",
     .needs = NEEDS_DATABASE | NEEDS_FORMAT,
     .key_purpose = ACCESS_KEY_PURPOSE,
     .read = key_read,
     .run = key_command},

    {.name = "events",
     .group = GROUP_OPERATE,
     .usage = "tail|dead|redrive [ID] [--from POSITION]",
     .summary = "events as they are written, and dead letters",
     .help = "  tail          follows the outbox from now on: one CloudEvent a line, or --format table|csv\n"
             "  dead          events that no queue or broker took, and receipts that were refused, with the reason\n"
             "  redrive [ID]  publishes them again, all or the one of this id; refused receipts are tried again\n",
     .options =
         OPTIONS({"--from", "POSITION", "tail: everything behind this position of the outbox; 0 for all that is kept"}),
     .words = 2,
     .verbs = "tail dead redrive",
     .needs = NEEDS_DATABASE | NEEDS_FORMAT,
     .read = events_read,
     .run = events_command},
    {.name = "limits",
     .group = GROUP_OPERATE,
     .usage = "show|reset KEY",
     .summary = "requests counted against the rate limits, and forgetting them",
     .help =
         "KEY is ip:ADDRESS, email:ADDRESS or global. An IPv6 address also stands for its /48 (the tiers named "
         "-site).\n"
         "With email:ADDRESS ip:ADDRESS the passwords tried for that address from that network are included.\n"
         "\n"
         "  show KEY   requests counted in each tier's window, what is left, and how long until one more is let in\n"
         "  reset KEY  forgets them, at every running instance\n",
     .words = 3,
     .verbs = "show reset",
     .needs = NEEDS_DATABASE | NEEDS_FORMAT,
     .key_purpose = IDENTIFIER_PURPOSE,
     .read = limits_read,
     .run = limits_command},
    {.name = "switch",
     .group = GROUP_OPERATE,
     .usage = "add NAME URL | list | remove NAME",
     .summary = "SIP switches, at which calls of frozen customers are ended",
     .help =
         "  add NAME URL  records Kamailio's JSON-RPC for every instance, or a new URL of a switch that is recorded:\n"
         "                https://, or http:// to this machine when all instances run on it\n"
         "  list          the switches, where each URL comes from, and their live calls\n"
         "  remove NAME   takes it out; refused while it has live calls\n"
         "\n"
         "RECLAIM_SWITCH_RPC_URL is recorded as `default` when a server starts; only instances with that setting\n"
         "use it. With several switches a call with a SIP dialog must name its own (POST /v1/calls, `switch`).\n",
     .options = OPTIONS({"--force", NULL, "remove: also with live calls, which a freeze then ends in the table only"}),
     .words = 3,
     .verbs = "add list remove",
     .needs = NEEDS_DATABASE | NEEDS_FORMAT,
     .read = switch_read,
     .run = switch_command},
    {.name = "clock",
     .group = GROUP_OPERATE,
     .usage = "[advance DURATION|reset]",
     .summary = "the clock of a sandbox: shows it, moves it ahead, sets it back",
     .help =
         "Prints the real time, by how much the installation's clock is ahead, and its time.\n"
         "\n"
         "  advance DURATION   moves it ahead on every instance at once, such as advance 29d: running servers then\n"
         "                     send reminders, delete, charge and look again at what became due. Tokens, sessions,\n"
         "                     keys, rate limits and leases of work go by the real time.\n"
         "  reset              sets it back to the real time; refused once something was dated by it\n"
         "\n"
         "Only where RECLAIM_SANDBOX is on, as with --demo.\n",
     .words = 2,
     .verbs = "advance reset",
     .needs = NEEDS_DATABASE | NEEDS_FORMAT | RUNS_ONCE,
     .read = clock_read,
     .run = clock_command},
    {.name = "doctor",
     .group = GROUP_OPERATE,
     .usage = "[--repair]",
     .summary = "checks settings, database, privileges, mail, broker and switch",
     .help =
         "Checks everything that Reclaim needs and prints a line for each: ok, warn, or FAIL with what to do about\n"
         "it. Exits with 1 when something failed. It also finds customers that were changed while the triggers of\n"
         "their table did not fire, so that billing, keys, calls or events disagree with the row. --repair also\n"
         "takes back the search path that earlier versions set for roles that are not Reclaim's own.\n",
     .options = OPTIONS({"--repair", NULL, "writes what follows from such changes, with the audit's action repair"}),
     .needs = NEEDS_CONFIG | NEEDS_FORMAT,
     .run = doctor_command},
    {.name = "config",
     .group = GROUP_OPERATE,
     .usage = "",
     .summary = "the settings in force, and where each comes from",
     .help = "Lists every setting with its value and source: default, environment or file. Secrets and passwords are\n"
             "shown as ***.\n",
     .needs = NEEDS_SETTINGS | NEEDS_FORMAT,
     .run = config_command},
    {.name = "healthcheck",
     .group = GROUP_OPERATE,
     .usage = "",
     .summary = "exit code 0 when the server of this machine is ready",
     .help =
         "Asks /readyz at RECLAIM_OPS_LISTEN and waits up to five seconds for the answer: for containers and service\n"
         "managers. Prints nothing when the server is ready, and what is wrong otherwise.\n",
     .needs = NEEDS_SETTINGS,
     .run = healthcheck_command},
    {.name = "completion",
     .group = GROUP_OPERATE,
     .usage = "bash|zsh|fish",
     .summary = "a script that completes these commands in a shell",
     .help = "Prints it on standard output:\n"
             "  bash  source <(reclaim completion bash)\n"
             "  zsh   reclaim completion zsh >~/.zfunc/_reclaim, with ~/.zfunc in $fpath\n"
             "  fish  reclaim completion fish >~/.config/fish/completions/reclaim.fish\n",
     .words = 1,
     .verbs = "bash zsh fish",
     .read = completion_read,
     .run = completion_command},
    {.name = "help",
     .group = GROUP_OPERATE,
     .usage = "[COMMAND|settings [--markdown|--ini]] [--man]",
     .summary = "this text, one command's, or all settings",
     .help = "  help COMMAND   what a command does and takes\n"
             "  help settings  every setting, its default and bounds\n",
     .options = OPTIONS({"--markdown", NULL, "the settings as docs/settings.md"},
                        {"--ini", NULL, "the settings as a file for --config, with every default"},
                        {"--man", NULL, "the manual page reclaim(1); with settings, reclaim.ini(5)"}),
     .words = 1,
     .read = help_read,
     .run = help_command},
};
const size_t command_count = COUNT_OF(command_table);
