/* The functions behind the table of subcommands; those named ..._read check the arguments. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cli/command.h"

enum err init_read(struct command_context *c);
enum err init_command(struct command_context *c);
enum err migrate_command_read(struct command_context *c);
enum err migrate_command(struct command_context *c);

enum err customer_read(struct command_context *c); /* for the six that take a customer's id */
enum err customer_show_command(struct command_context *c);
enum err customer_freeze_command(struct command_context *c);
enum err customer_recover_command(struct command_context *c);
enum err customer_delete_command(struct command_context *c);
enum err customer_hold_command(struct command_context *c); /* hold and unhold */

enum err customers_read(struct command_context *c);
enum err customers_command(struct command_context *c);

enum err expire_read(struct command_context *c);
enum err expire_command(struct command_context *c);
enum err cascade_read(struct command_context *c);
enum err cascade_command(struct command_context *c);

enum err verify_read(struct command_context *c);
enum err verify_command(struct command_context *c);
enum err key_set_command(struct command_context *c);
struct proof_keys;
/* The keys that sign certificates; `why` says what is missing. */
enum err command_proof_keys(struct command_context *c, struct proof_keys *ret) MUST_CHECK;
/* What the journal on this machine has and the database lacks is recorded, as a server does at its start. */
enum err command_look_at_journal(struct command_context *c) MUST_CHECK;
enum err replay_command(struct command_context *c);
enum err journal_command_read(struct command_context *c);
enum err journal_command(struct command_context *c);
enum err audit_log_read(struct command_context *c);
enum err audit_log_command(struct command_context *c);

enum err orphans_read(struct command_context *c);
enum err orphans_command(struct command_context *c);
enum err trace_read(struct command_context *c);
enum err trace_command(struct command_context *c);
enum err limits_read(struct command_context *c);
enum err limits_command(struct command_context *c);
enum err locks_command(struct command_context *c);
extern const struct statement locks_look; /* who holds which clean-up lock; `doctor` prints its text */

enum err token_read(struct command_context *c);
enum err token_command(struct command_context *c);
enum err key_read(struct command_context *c);
enum err key_command(struct command_context *c);

enum err events_read(struct command_context *c);
enum err events_command(struct command_context *c);
enum err switch_read(struct command_context *c);
enum err switch_command(struct command_context *c);
enum err columns_read(struct command_context *c);
enum err columns_command(struct command_context *c);
enum err clock_read(struct command_context *c);
enum err clock_command(struct command_context *c);
enum err doctor_command(struct command_context *c);
enum err config_command(struct command_context *c);
enum err healthcheck_command(struct command_context *c);
enum err help_read(struct command_context *c);
enum err help_command(struct command_context *c);
enum err completion_read(struct command_context *c);
enum err completion_command(struct command_context *c);

#endif
