/* Private to src/cli: what `reclaim doctor` finds about the keys of tokens. */
#ifndef CLI_DOCTOR_TOKENS_H
#define CLI_DOCTOR_TOKENS_H

#include "server/database.h"
#include "settings/settings.h"

/* Reads the files and the URL that the settings name, as the server does at its start. */
void doctor_check_tokens(const struct settings *s, finding_handler *each, void *context);

#endif
