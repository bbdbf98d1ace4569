/* Subcommands that do one thing and end. Each gets its own arguments, argv[0] being its name, and returns an exit code:
 * 0 done, 1 failed, 2 not understood. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

int command_migrate(int argc, char **argv);
int command_orphans(int argc, char **argv);
int command_events(int argc, char **argv);
int command_limits(int argc, char **argv);
int command_trace(int argc, char **argv);
int command_locks(int argc, char **argv);
int command_token(int argc, char **argv);
int command_key(int argc, char **argv);
int command_customer(int argc, char **argv); /* show, freeze and recover */
int command_removal(int argc, char **argv);  /* delete, hold and unhold */
int command_expire(int argc, char **argv);
int command_cascade(int argc, char **argv);
int command_doctor(int argc, char **argv);

#endif
