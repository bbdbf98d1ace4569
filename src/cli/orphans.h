/* Private to src/cli: `reclaim orphans` and what it deletes. */
#ifndef CLI_ORPHANS_H
#define CLI_ORPHANS_H

#include "cli/command.h"
#include "recovery/cleanup.h"

enum orphans_verb { ORPHANS_LIST, ORPHANS_DELETE, ORPHANS_PURGE };

struct orphans_input {
    enum orphans_verb verb;
    int64_t age_ms; /* list and purge */
};

/* `delete` and `purge`, once the tables are checked. */
enum err orphans_delete(struct command_context *c, struct orphan_statements *orphans) MUST_CHECK;

#endif
