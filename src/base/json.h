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
void json_i64(struct json_writer *w, int64_t n);
void json_bool(struct json_writer *w, bool b);
void json_null(struct json_writer *w);
void json_raw(struct json_writer *w, struct str json); /* finished JSON, trusted */

/* Reading: one object, UTF-8, no duplicate keys, no NUL in strings, nothing behind it. NULL otherwise; `why` says where.
 * The caller json_decref()s it; AUTO(json) json_t *root does so by itself. */
json_t *json_read_object(struct str text, struct why *why) MUST_CHECK;
void json_cleanup(json_t **root);
/* The member as a string; ERR_MISSING when absent, ERR_INPUT when of another type. */
enum err json_get_str(const json_t *object, const char *key, struct str *ret) MUST_CHECK;

#endif
