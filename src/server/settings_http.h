/* GET /v1/settings: the settings in force, secrets masked. */
#ifndef SERVER_SETTINGS_HTTP_H
#define SERVER_SETTINGS_HTTP_H

#include "gate/authenticate.h"

/* Behind authenticate_guarded; the context is an _Atomic(const struct settings *). */
void settings_handle(struct request *rq, const struct caller *caller, void *settings);

#endif
