/* Private to src/text: numbers, times and addresses as HTML, in a language. */
#ifndef TEXT_FORMAT_H
#define TEXT_FORMAT_H

#include "text/sentences.h"

void format_number(struct buf *out, enum language language, int64_t number); /* 1,204 */
enum time_format { FORMAT_DATE, FORMAT_CLOCK, FORMAT_SECONDS };
/* RFC 3339 in UTC: <time datetime="…">15 December 2026, 14:32 UTC</time>; a script of the page puts it into the reader's
 * time zone. Nothing when the text is no time. */
void format_time(struct buf *out, const struct sentences *sentences, enum language language, struct str rfc3339,
                 enum time_format format);
/* The same without the element: "15 December 2026, 14:32 UTC". */
void format_plain_time(struct buf *out, const struct sentences *sentences, enum language language, struct str rfc3339);
void format_masked(struct buf *out, struct str address); /* ad•••@example.com */
void format_query(struct buf *out, struct str text);     /* %XX for all but letters, digits and -_.~ */

#endif
