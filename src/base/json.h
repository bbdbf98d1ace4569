/* Writes JSON into a bounded buffer; reads JSON with jansson, more strictly than jansson does by default. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <jansson.h>

#include "base/buf.h"

/* Writing. The writer adds the commas:
 *   json_open(&w, '{'); json_key(&w, "status"); json_str(&w, STR("ok")); json_close(&w, '}');
 * Strings that are not UTF-8 are written with U+FFFD for the wrong bytes. */
struct json_writer {
    struct buf *out;
    bool need_comma;
};

struct json_writer json_to(struct buf *out);
void json_open(struct json_writer *w, char bracket);
void json_close(struct json_writer *w, char bracket);
void json_key(struct json_writer *w, const char *key);
void json_str(struct json_writer *w, struct str s); /* absent becomes null */
/* Writes at most `most` bytes between the quotes, followed by "…" when the text was cut. */
void json_str_cut(struct json_writer *w, struct str s, size_t most);
void json_i64(struct json_writer *w, int64_t n);
void json_double(struct json_writer *w, double r); /* null when not finite */
void json_bool(struct json_writer *w, bool b);
void json_nil(struct json_writer *w);                  /* named so because jansson has a json_null() */
void json_raw(struct json_writer *w, struct str json); /* finished JSON, trusted */

/* Reading: one object, UTF-8, no duplicate keys, no NUL in strings, at most 32 levels deep, nothing after it.
 * NULL otherwise; `why` describes the error and its position without quoting the text.
 * The caller json_decref()s it; AUTO(json) json_t *root does so automatically. */
json_t *json_read_object(struct str text, struct why *why) MUST_CHECK;
json_t *json_read_array(struct str text, struct why *why) MUST_CHECK; /* the same for an array */
void json_cleanup(json_t **root);
/* A string member, valid as long as the object; ERR_MISSING when absent, ERR_INPUT when it has another type. */
enum err json_get_str(const json_t *object, const char *key, struct str *ret) MUST_CHECK;

#endif
