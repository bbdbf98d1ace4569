/* Normalises e-mail addresses: look-ups, hashes and locks use only the form made here. */
#ifndef BASE_EMAIL_H
#define BASE_EMAIL_H

#include "base/arena.h"

#define EMAIL_MAX ((size_t)255)

/* Trims white space, lower-cases ASCII letters, then checks length and shape: local part and domain of the characters
 * that Supabase Auth takes, at least two labels. ERR_INPUT otherwise. */
enum err email_normalise(struct arena *arena, struct str given, struct str *ret) MUST_CHECK;

#endif
