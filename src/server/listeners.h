/* How the two listeners are configured. */
#ifndef SERVER_LISTENERS_H
#define SERVER_LISTENERS_H

#include "http/server.h"
#include "settings/settings.h"

struct server_config listener_public(const struct settings *s, const struct router *router,
                                     const struct http_policy *policy);
/* For the operator's own network: no limit per network, and its requests are not logged. */
struct server_config listener_ops(const struct settings *s, const struct router *router,
                                  const struct http_policy *policy);

#endif
