#include "http/form.h"

#include <microhttpd.h>
#include <string.h>

#include "http/loop.h"

#define STEP 1024 /* of the library's post processor: longer values come in parts */

static bool is_form(struct str content_type)
{
    struct str kind;
    return content_type.at && str_split(&content_type, ';', &kind) &&
           str_eq_nocase(str_trim(kind), STR("application/x-www-form-urlencoded"));
}

struct form_reading {
    struct request *rq;
    struct form *form;
    enum err err;
};

/* Adds a field, or the next part of the last one's value. */
static enum MHD_Result take(void *context, enum MHD_ValueKind kind, const char *key, const char *filename,
                            const char *type, const char *encoding, const char *data, uint64_t offset, size_t size)
{
    (void)kind, (void)filename, (void)type, (void)encoding;
    struct form_reading *r = context;
    struct form *form = r->form;
    if (offset == 0 && form->count == FORM_FIELDS_MAX) {
        r->err = ERR_INPUT;
        return MHD_NO;
    }
    struct form_field *field = &form->fields[offset == 0 ? form->count++ : form->count - 1];
    if (offset == 0)
        *field = (struct form_field){arena_copy(r->rq->arena, str_of(key)), STR("")};
    char *whole = arena_take(r->rq->arena, field->value.len + size + 1);
    if (!whole || !field->name.at) {
        r->err = ERR_MEMORY;
        return MHD_NO;
    }
    memcpy(whole, field->value.at, field->value.len);
    memcpy(whole + field->value.len, data, size);
    field->value = (struct str){whole, field->value.len + size};
    return MHD_YES;
}

static bool is_text(struct str s)
{
    return str_is_utf8(s) && !memchr(s.at, 0, s.len);
}

enum err form_read(struct request *rq, struct form *ret)
{
    struct form_reading r = {rq, ret, OK};
    *ret = (struct form){0};
    if (!is_form(request_header(rq, "Content-Type")))
        return ERR_INPUT;
    struct MHD_PostProcessor *processor = MHD_create_post_processor(visit_connection(rq), STEP, take, &r);
    if (!processor)
        return ERR_MEMORY;
    enum MHD_Result processed = MHD_post_process(processor, rq->body.at, rq->body.len);
    if (MHD_destroy_post_processor(processor) != MHD_YES || processed != MHD_YES)
        r.err = r.err ? r.err : ERR_INPUT;
    for (size_t i = 0; i < ret->count && !r.err; i++)
        if (!is_text(ret->fields[i].name) || !is_text(ret->fields[i].value))
            r.err = ERR_INPUT;
    return r.err;
}

struct str form_get(const struct form *form, const char *name)
{
    for (size_t i = 0; i < form->count; i++)
        if (str_eq(form->fields[i].name, str_of(name)))
            return form->fields[i].value;
    return (struct str){NULL, 0};
}
