#include "api/fields.h"

#include "api/db_request.h"

struct fields fields_read(struct arena *arena, struct str body, const char *code, const char *message)
{
    struct fields f = {.arena = arena, .body = json_read_object(body, NULL)};
    if (!f.body) {
        f.err = ERR_INPUT;
        f.code = code;
        f.message = message;
    }
    return f;
}

void fields_cleanup(struct fields *f)
{
    json_decref(f->body);
}

void fields_fail(struct fields *f, const struct field *field, const char *what)
{
    if (f->err)
        return;
    f->err = ERR_INPUT;
    f->code = field->code ? field->code : "INVALID_INPUT";
    f->message = field->message ? field->message : arena_printf(f->arena, "%s %s.", field->name, what).at;
    if (!f->message)
        f->err = ERR_FULL;
}

/* NULL when it is absent, which is a problem if it is required. */
static const json_t *find(struct fields *f, const struct field *field)
{
    const json_t *value = json_object_get(f->body, field->name);
    if (value && (field->refuses_null || !json_is_null(value)))
        return value;
    if (field->required)
        fields_fail(f, field, "is missing");
    return NULL;
}

struct str field_text(struct fields *f, const struct field *field)
{
    const json_t *value = find(f, field);
    struct str text = {json_string_value(value), json_string_length(value)};
    if (!value)
        return text;
    if (!text.at)
        fields_fail(f, field, "must be a string");
    else if (field->bytes_max && text.len > field->bytes_max)
        fields_fail(f, field, "is too long");
    else if (field->fits && !field->fits(text))
        fields_fail(f, field, "is not well-formed");
    else
        return text;
    return (struct str){NULL, 0};
}

const char *field_copy(struct fields *f, const struct field *field)
{
    struct str text = field_text(f, field);
    if (!text.at)
        return NULL;
    const char *copy = arena_copy(f->arena, text).at;
    if (!copy && !f->err)
        f->err = ERR_FULL;
    return copy;
}

const char *field_uuid(struct fields *f, const struct field *field)
{
    struct str text = field_text(f, field);
    if (!text.at)
        return NULL;
    if (!str_is_uuid(text)) {
        fields_fail(f, field, "must be a UUID");
        return NULL;
    }
    return field_copy(f, field);
}

bool field_integer(struct fields *f, const struct field *field, int64_t min, int64_t max, int64_t *ret)
{
    const json_t *value = find(f, field);
    json_int_t n = json_integer_value(value);
    if (!value)
        return false;
    if (!json_is_integer(value) || n < min || n > max) {
        fields_fail(f, field, "must be a whole number within its bounds");
        return false;
    }
    *ret = n;
    return true;
}

bool fields_refuse(const struct fields *f, struct request *rq)
{
    if (f->err == ERR_INPUT)
        reply_refuse(rq, 400, f->code, f->message);
    else if (f->err)
        reply_fault(rq, f->err);
    return f->err != OK;
}
