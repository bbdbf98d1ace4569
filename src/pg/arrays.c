#include "pg/arrays.h"

static void begin_element(struct buf *array)
{
    buf_add(array, array->len ? STR(",") : STR("{"));
}

void array_add_i64(struct buf *array, int64_t n)
{
    begin_element(array);
    buf_addf(array, "%lld", (long long)n);
}

void array_add_plain(struct buf *array, struct str element)
{
    begin_element(array);
    buf_add(array, element);
}

void array_add_text(struct buf *array, struct str element)
{
    begin_element(array);
    if (!element.at) {
        buf_add(array, STR("NULL"));
        return;
    }
    buf_add(array, STR("\""));
    for (size_t done = 0, at = 0; at <= element.len; at++) {
        bool special = at < element.len && (element.at[at] == '"' || element.at[at] == '\\');
        if (!special && at < element.len)
            continue;
        buf_add(array, (struct str){element.at + done, at - done});
        if (special)
            buf_add(array, STR("\\"));
        done = at;
    }
    buf_add(array, STR("\""));
}

const char *array_end(struct buf *array)
{
    buf_add(array, array->len ? STR("}") : STR("{}"));
    return array->failed ? NULL : buf_str(array).at;
}

int64_t array_next_i64(struct str *rest)
{
    int64_t n = 0;
    if (rest->len && (rest->at[0] == '{' || rest->at[0] == ','))
        *rest = (struct str){rest->at + 1, rest->len - 1};
    size_t len = 0;
    while (len < rest->len && rest->at[len] != ',' && rest->at[len] != '}')
        len++;
    struct str part = {rest->at, len};
    *rest = (struct str){rest->at + len, rest->len - len};
    return str_to_i64(part, INT64_MIN + 1, INT64_MAX, &n) ? 0 : n;
}
