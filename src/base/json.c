#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* jansson recurses, and threads have small stacks; nothing we read nests deeper than a few levels. */
#define DEPTH_MAX 32

struct json_writer json_to(struct buf *out)
{
    return (struct json_writer){out, false};
}

/* Called before each value or key: adds a comma if needed. */
static void begin(struct json_writer *w)
{
    if (w->need_comma)
        buf_add(w->out, STR(","));
    w->need_comma = true;
}

void json_open(struct json_writer *w, char bracket)
{
    begin(w);
    buf_add(w->out, (struct str){&bracket, 1});
    w->need_comma = false;
}

void json_close(struct json_writer *w, char bracket)
{
    buf_add(w->out, (struct str){&bracket, 1});
    w->need_comma = true;
}

void json_key(struct json_writer *w, const char *key)
{
    json_str(w, str_of(key));
    buf_add(w->out, STR(":"));
    w->need_comma = false;
}

/* The length of the first character of s if it needs no escape in a JSON string, else 0. Terminals interpret U+007F
 * to U+009F as well, so these are escaped like the other control characters. */
static size_t plain(struct str s)
{
    unsigned char c = (unsigned char)s.at[0];
    if (c < 0x80)
        return c >= 0x20 && c < 0x7F && c != '"' && c != '\\';
    size_t len = str_utf8_len(s);
    return len == 2 && c == 0xC2 && (unsigned char)s.at[1] < 0xA0 ? 0 : len;
}

/* The longest prefix of s, in whole characters and at most `most` bytes, that needs no escape. */
static struct str plain_run(struct str s, size_t most)
{
    size_t len = 0;
    while (len < s.len) {
        size_t n = plain((struct str){s.at + len, s.len - len});
        if (n == 0 || n > most - len)
            break;
        len += n;
    }
    return (struct str){s.at, len};
}

/* Writes the escape sequence for the first character of s and returns how many bytes of s it replaces. */
static size_t escape(struct str s, char into[7])
{
    static const char short_forms[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    unsigned char c = (unsigned char)s.at[0];
    for (size_t i = 0; i < sizeof short_forms - 1; i += 2) {
        if (s.at[0] == short_forms[i]) {
            (void)snprintf(into, 7, "\\%c", short_forms[i + 1]);
            return 1;
        }
    }
    size_t len = str_utf8_len(s);
    if (len == 0) {
        (void)snprintf(into, 7, "\xEF\xBF\xBD");
        return 1;
    }
    (void)snprintf(into, 7, "\\u%04x", len == 2 ? (unsigned char)s.at[1] : c);
    return len;
}

void json_str_cut(struct json_writer *w, struct str s, size_t most)
{
    if (!s.at) {
        json_nil(w);
        return;
    }
    begin(w);
    buf_add(w->out, STR("\""));
    while (s.len > 0) {
        struct str run = plain_run(s, most);
        size_t taken = run.len;
        char escaped[7];
        if (taken == 0) {
            if (plain(s))
                break;
            taken = escape(s, escaped);
            run = str_of(escaped);
            if (run.len > most)
                break;
        }
        buf_add(w->out, run);
        most -= run.len;
        s.at += taken;
        s.len -= taken;
    }
    buf_addz(w->out, s.len > 0 ? "…\"" : "\"");
}

void json_str(struct json_writer *w, struct str s)
{
    json_str_cut(w, s, SIZE_MAX);
}

void json_i64(struct json_writer *w, int64_t n)
{
    begin(w);
    buf_addf(w->out, "%" PRId64, n);
}

void json_double(struct json_writer *w, double r)
{
    if (!isfinite(r)) {
        json_nil(w);
        return;
    }
    begin(w);
    buf_addf(w->out, "%.15g", r);
}

void json_bool(struct json_writer *w, bool b)
{
    begin(w);
    buf_addz(w->out, b ? "true" : "false");
}

void json_nil(struct json_writer *w)
{
    begin(w);
    buf_add(w->out, STR("null"));
}

void json_raw(struct json_writer *w, struct str json)
{
    begin(w);
    buf_add(w->out, json);
}

/* Counts brackets as jansson does, up to the first syntax error, where jansson stops. */
static bool too_deep(struct str text)
{
    bool in_string = false;
    size_t depth = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        if (c == '"')
            in_string = !in_string;
        else if (in_string && c == '\\')
            i++;
        else if (!in_string && (c == '{' || c == '['))
            depth++;
        else if (!in_string && (c == '}' || c == ']') && depth > 0)
            depth--;
        if (depth > DEPTH_MAX)
            return true;
    }
    return false;
}

/* jansson's own messages quote the text, which may be a secret. */
static const char *error_text(const json_error_t *error)
{
    switch (json_error_code(error)) {
    case json_error_out_of_memory:
        return "out of memory";
    case json_error_premature_end_of_input:
        return "it ends too early";
    case json_error_end_of_input_expected:
        return "something stands behind the object";
    case json_error_invalid_utf8:
        return "not UTF-8";
    case json_error_null_character:
    case json_error_null_byte_in_key:
        return "a string holds a NUL";
    case json_error_duplicate_key:
        return "a key stands there twice";
    case json_error_numeric_overflow:
        return "a number is too large";
    default:
        return "not JSON";
    }
}

static json_t *read_root(struct str text, json_type type, struct why *why)
{
    if (!text.at) {
        (void)why_set(why, ERR_INPUT, "there is nothing to read");
        return NULL;
    }
    if (too_deep(text)) {
        (void)why_set(why, ERR_INPUT, "nested more than %d levels deep", DEPTH_MAX);
        return NULL;
    }
    json_error_t error;
    json_t *root = json_loadb(text.at, text.len, JSON_REJECT_DUPLICATES, &error);
    if (!root) {
        (void)why_set(why, ERR_INPUT, "%s, at line %d, column %d", error_text(&error), error.line, error.column);
        return NULL;
    }
    if (json_typeof(root) != type) {
        json_decref(root);
        (void)why_set(why, ERR_INPUT, type == JSON_OBJECT ? "not an object" : "not an array");
        return NULL;
    }
    return root;
}

json_t *json_read_object(struct str text, struct why *why)
{
    return read_root(text, JSON_OBJECT, why);
}

json_t *json_read_array(struct str text, struct why *why)
{
    return read_root(text, JSON_ARRAY, why);
}

void json_cleanup(json_t **root)
{
    json_decref(*root);
}

enum err json_get_str(const json_t *object, const char *key, struct str *ret)
{
    const json_t *member = json_object_get(object, key);
    if (!member)
        return ERR_MISSING;
    if (!json_is_string(member))
        return ERR_INPUT;
    *ret = (struct str){json_string_value(member), json_string_length(member)};
    return OK;
}
