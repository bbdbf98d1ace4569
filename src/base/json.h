/* JSON out through a bounded writer, JSON in through jansson with our strictness. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <jansson.h>

#include "base/buf.h"

/* Writing. Commas are the writer's care:
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
/* At most so many bytes between the quotes, and "…" behind them when that was not all. */
void json_str_cut(struct json_writer *w, struct str s, size_t most);
void json_i64(struct json_writer *w, int64_t n);
void json_double(struct json_writer *w, double r); /* null when not finite */
void json_bool(struct json_writer *w, bool b);
void json_nil(struct json_writer *w);                  /* jansson's json_null is a value */
void json_raw(struct json_writer *w, struct str json); /* finished JSON, trusted */

/* Reading: one object, UTF-8, no duplicate keys, no NUL in strings, at most 32 levels deep, nothing behind it.
 * NULL otherwise; `why` says what and where without quoting the text.
 * The caller json_decref()s it; AUTO(json) json_t *root does so by itself. */
json_t *json_read_object(struct str text, struct why *why) MUST_CHECK;
void json_cleanup(json_t **root);
/* The member as a string, valid as long as the object; ERR_MISSING when absent, ERR_INPUT when of another type. */
enum err json_get_str(const json_t *object, const char *key, struct str *ret) MUST_CHECK;

#endif
