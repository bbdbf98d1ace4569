/* Private to src/cli: the checks of `reclaim doctor`, for other commands. */
#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H

#include "base/err.h"

/* Prints what is wrong with the settings of this file and all that they name, and how many of it have to be mended. */
enum err doctor_examine(const char *config, int *ret_failures, struct why *why) MUST_CHECK;

#endif
