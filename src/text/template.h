/* HTML templates, filled with values and sentences; every value is escaped.
 *
 *   {{customer.name}}            a value, by its path; looked up in the innermost {{#each}} first
 *   {{t recover.title}}          a sentence, its {placeholders} filled with values, {mask name} with a masked
 *                                address; **bold** becomes <strong>
 *   {{t recover.tries tries}}    recover.tries.one or recover.tries.other, by the number `tries`
 *   {{word error code}}          the sentence error.CODE for the value `code`, or error.other
 *   {{#if path}} {{#else}} {{/if}}     false: absent, null, false, 0, "", [] and {}
 *   {{#is path word}} {{#else}} {{/is}}    the value equals the word
 *   {{#each path}} {{/each}}     for each item of an array; {{.}} is the item itself
 *   {{>partial}}                 another template
 *   {{time path}} {{date path}}  RFC 3339 text as a <time> in the reader's language
 *   {{moment path}}              the same with seconds
 *   {{number path}}              1,204 or 1.204
 *   {{mask path}}                an address as ad•••@example.com
 *   {{query path}}               escaped for a query string
 *   {{asset base.css}}           the address of an asset
 *   {{raw path}}                 not escaped: HTML or SVG made by the program itself
 */
#ifndef TEXT_TEMPLATE_H
#define TEXT_TEMPLATE_H

#include "base/json.h"
#include "text/sentences.h"

struct template;

struct template_source { /* finds a template's text by name, "recover"; absent: there is none */
    struct str (*find)(const char *name, void *context);
    void *context;
};

/* ERR_INPUT with a sentence that names the template and the place. */
enum err template_parse(const char *name, const struct template_source *source, struct template **ret,
                        struct why *why) MUST_CHECK;
void template_free(struct template *t);

struct reader { /* for whom it is filled */
    const struct sentences *sentences;
    enum language language;
    const char *(*asset)(const char *name); /* NULL: the template names none */
};

/* A value that is not there leaves nothing. */
void template_fill(const struct template *t, const struct reader *reader, const json_t *values, struct buf *out);
/* A sentence alone, filled and escaped in the same way. */
void template_fill_sentence(const struct reader *reader, enum text id, const json_t *values, struct buf *out);
/* The same as plain text, without escapes and marks of bold type. */
void text_fill_sentence(const struct reader *reader, enum text id, const json_t *values, struct buf *out);
/* RFC 3339 text as "15 December 2026, 14:32 UTC"; nothing when it is no time. */
void text_fill_time(const struct reader *reader, struct str rfc3339, struct buf *out);

#endif
