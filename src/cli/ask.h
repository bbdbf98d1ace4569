/* Private to src/cli: questions on the terminal, on standard error, so that standard output has the result alone. */
#ifndef CLI_ASK_H
#define CLI_ASK_H

#include "base/arena.h"

bool ask_can(void); /* standard input and standard error are a terminal */
/* The line that was typed, without blanks at its ends; `standard` when it is empty or there is no more input. */
const char *ask_line(struct arena *arena, const char *question, const char *standard);
const char *ask_secret(struct arena *arena, const char *question); /* without showing it; "" when there is none */
bool ask_yes(const char *question, bool standard);

#endif
