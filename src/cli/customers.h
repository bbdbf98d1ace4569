/* What the commands about customers share. */
#ifndef CLI_CUSTOMERS_H
#define CLI_CUSTOMERS_H

#include "cli/command.h"

/* Prints one lease after the commit, as the server replies: by then every instance has read the change. */
void print_after_lease(int64_t committed_ns, struct str object);

/* `reclaim customers import`. */
enum err customers_import(struct command_context *c) MUST_CHECK;
/* The same with --owners. */
enum err customers_import_owners(struct command_context *c) MUST_CHECK;

#endif
