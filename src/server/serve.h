/* `reclaim serve`: wires the folders together, brings the database up, and runs until told to stop. */
#ifndef SERVER_SERVE_H
#define SERVER_SERVE_H

#include <stdbool.h>

/* From the program's first thread. Returns the exit code. */
int serve(const char *config_file, bool demo);

#endif
