/* The languages of pages and mails, and which one a reader gets. */
#ifndef TEXT_LANGUAGE_H
#define TEXT_LANGUAGE_H

#include "base/str.h"

enum language { LANGUAGE_EN, LANGUAGE_DE };
#define LANGUAGES 2

const char *language_tag(enum language language);                       /* "en" */
enum err language_parse(struct str tag, enum language *ret) MUST_CHECK; /* "de", "de-AT", in any case; ERR_MISSING */
/* The reader's best of Accept-Language. ERR_MISSING when it is absent, "*", or names none that is here. */
enum err language_asked(struct str accept, enum language *ret) MUST_CHECK;
enum language language_choose(struct str accept, enum language otherwise); /* the same, with a default */

#endif
