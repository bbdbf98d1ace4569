/* The languages of pages and mails, and which one a reader gets. */
#ifndef TEXT_LANGUAGE_H
#define TEXT_LANGUAGE_H

#include "base/str.h"

enum language { LANGUAGE_EN, LANGUAGE_DE };
#define LANGUAGES 2

const char *language_tag(enum language language);                       /* "en" */
enum err language_parse(struct str tag, enum language *ret) MUST_CHECK; /* "de", "de-AT", in any case; ERR_MISSING */
/* The reader's best of Accept-Language; "*" and languages that are not here leave the default. */
enum language language_choose(struct str accept, enum language otherwise);

#endif
