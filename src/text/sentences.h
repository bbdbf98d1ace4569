/* Every sentence that people read on pages and in mails, by language, from web/texts.
 *
 * A sentence is named TEXT_SECTION_KEY. The build fails when a language lacks one, or has other placeholders. A folder of
 * the operator's may replace sentences: NAME.ini with the same sections and keys. */
#ifndef TEXT_SENTENCES_H
#define TEXT_SENTENCES_H

#include "base/buf.h"
#include "text/language.h"
#include "text/sentence_ids.h" /* generated: enum text, TEXT_COUNT */

struct sentences;

/* `folder` may be NULL. ERR_INPUT, with the file and key, for a key that does not exist or a placeholder that the sentence
 * does not have. */
enum err sentences_load(const char *folder, struct sentences **ret, struct why *why) MUST_CHECK;
void sentences_free(struct sentences *s);

struct str sentence(const struct sentences *s, enum language language, enum text id);
/* By its name in the files, "recover.title"; ERR_MISSING. */
enum err sentence_find(struct str key, enum text *ret) MUST_CHECK;

/* Adds the sentence with each {name} replaced: `value` writes it and returns whether it knows the name. */
void sentence_fill(struct buf *out, struct str sentence, bool (*value)(struct buf *out, struct str name, void *context),
                   void *context);

/* Generated from web/texts. */
extern const char *const sentence_keys[TEXT_COUNT];
extern const char *const built_in_sentences[LANGUAGES][TEXT_COUNT];

#endif
