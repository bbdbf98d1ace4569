/* Text in a manual page: roff, as man(1) reads it. */
#ifndef TEXT_ROFF_H
#define TEXT_ROFF_H

#include <stdio.h>

/* Writes the text with everything escaped that roff would take for its own; back-ticks are left out. */
void roff_print(FILE *out, const char *text);

#endif
