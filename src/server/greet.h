/* Private to src/server: what `serve --demo` prints when it is ready. */
#ifndef SERVER_GREET_H
#define SERVER_GREET_H

#include "settings/settings.h"

/* The addresses of all pages, and two commands to try. */
void greet(const struct settings *s, const char *public, const char *ops, const char *database);

#endif
