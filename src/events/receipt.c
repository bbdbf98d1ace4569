#include "events/receipt.h"

#include <string.h>

#include "base/json.h"

#define ROWS_MAX INT64_C(9007199254740991)

static enum err read_participant(const json_t *root, struct receipt *r, struct why *why)
{
    struct str name;
    if (json_get_str(root, "participant", &name) || name.len == 0 ||
        str_copy(name, r->participant, sizeof r->participant))
        return why_set(why, ERR_INPUT, "participant is not a string of 1 to %zu bytes", sizeof r->participant - 1);
    return OK;
}

static enum err read_status(const json_t *root, struct receipt *r, struct why *why)
{
    struct str status = STR("done");
    enum err e = json_get_str(root, "status", &status);
    r->done = str_eq(status, STR("done"));
    if ((!e || e == ERR_MISSING) && (r->done || str_eq(status, STR("failed"))))
        return OK;
    return why_set(why, ERR_INPUT, "status is neither done nor failed");
}

static enum err read_rows(const json_t *root, struct receipt *r, struct why *why)
{
    const json_t *rows = json_object_get(root, "rows");
    r->rows = -1;
    if (!rows || json_is_null(rows))
        return OK;
    if (!json_is_integer(rows) || json_integer_value(rows) < 0 || json_integer_value(rows) > ROWS_MAX)
        return why_set(why, ERR_INPUT, "rows is not a non-negative integer");
    r->rows = json_integer_value(rows);
    return OK;
}

/* Truncates at the end of a character. */
static enum err read_error(const json_t *root, struct receipt *r, struct why *why)
{
    const json_t *error = json_object_get(root, "error");
    if (!error || json_is_null(error))
        return OK;
    if (!json_is_string(error))
        return why_set(why, ERR_INPUT, "error is not a string");
    const char *text = json_string_value(error);
    size_t all = json_string_length(error), len = 0;
    while (len < all) {
        size_t more = str_utf8_len((struct str){text + len, all - len});
        if (more == 0 || len + more > RECEIPT_ERROR_MAX)
            break;
        len += more;
    }
    memcpy(r->error, text, len);
    r->error_is_cut = len < all;
    if (r->error_is_cut)
        memcpy(r->error + len, "…", sizeof "…");
    return OK;
}

enum err receipt_read_report(const json_t *body, struct receipt *ret, struct why *why)
{
    enum err e = read_status(body, ret, why);
    if (e || (e = read_rows(body, ret, why)))
        return e;
    return read_error(body, ret, why);
}

enum err receipt_parse(struct str text, struct receipt *ret, struct why *why)
{
    struct receipt r = {.rows = -1};
    struct why json = {""};
    if (text.len > RECEIPT_BYTES_MAX)
        return why_set(why, ERR_INPUT, "longer than %zu bytes", RECEIPT_BYTES_MAX);
    AUTO(json) json_t *root = json_read_object(text, &json);
    if (!root)
        return why_set(why, ERR_INPUT, "not a JSON object: %s", json.text);
    struct str id;
    if (json_get_str(root, "customer_id", &id) || !str_is_uuid(id) || str_copy(id, r.customer_id, sizeof r.customer_id))
        return why_set(why, ERR_INPUT, "customer_id is not a UUID");
    enum err e = read_participant(root, &r, why);
    if (e)
        return e;
    if (!json_object_get(root, "status"))
        return why_set(why, ERR_INPUT, "status is missing");
    if ((e = receipt_read_report(root, &r, why)))
        return e;
    *ret = r;
    return OK;
}
