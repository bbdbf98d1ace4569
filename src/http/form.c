#include "http/form.h"

#include "http/escapes.h"

static bool is_form(struct str content_type)
{
    struct str kind;
    return content_type.at && str_split(&content_type, ';', &kind) &&
           str_eq_nocase(str_trim(kind), STR("application/x-www-form-urlencoded"));
}

/* "+" stands for a space in forms, then escapes as in a query. */
static enum err decode(struct request *rq, struct str raw, struct str *ret)
{
    struct str copy = arena_copy(rq->arena, raw);
    if (!copy.at)
        return ERR_MEMORY;
    char *at = (char *)(uintptr_t)copy.at;
    for (size_t i = 0; i < copy.len; i++)
        if (at[i] == '+')
            at[i] = ' ';
    return escapes_decode(rq->arena, copy, ret);
}

/* libmicrohttpd's post processor passes values on in parts, without a length limit and undecoded bytes unchecked: the body
 * is in memory already, and this is shorter. */
enum err form_read(struct request *rq, struct form *ret)
{
    *ret = (struct form){0};
    if (!is_form(request_header(rq, "Content-Type")))
        return ERR_INPUT;
    struct str rest = rq->body, pair, name;
    if (!rest.len)
        return OK;
    while (str_split(&rest, '&', &pair)) {
        if (!pair.len)
            continue;
        if (ret->count == FORM_FIELDS_MAX)
            return ERR_INPUT;
        struct form_field *field = &ret->fields[ret->count++];
        str_split(&pair, '=', &name);
        enum err e = decode(rq, name, &field->name);
        if (!e)
            e = decode(rq, pair.at ? pair : STR(""), &field->value);
        if (e)
            return e;
    }
    return OK;
}

struct str form_get(const struct form *form, const char *name)
{
    for (size_t i = 0; i < form->count; i++)
        if (str_eq(form->fields[i].name, str_of(name)))
            return form->fields[i].value;
    return (struct str){NULL, 0};
}
