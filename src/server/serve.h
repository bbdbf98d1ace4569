/* `reclaim serve`: connects the folders, opens the database and runs until SIGTERM or SIGINT. */
#ifndef SERVER_SERVE_H
#define SERVER_SERVE_H

#include <stdbool.h>

/* From the program's first thread. Returns the exit code. */
int serve(const char *config_file, bool demo);

#endif
