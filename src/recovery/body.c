#include "recovery/body.h"

#include "api/fields.h"
#include "base/email.h"

static const struct field correlation_id = {.name = "correlationId",
                                            .refuses_null = true,
                                            .fits = str_is_uuid,
                                            .message = "correlationId must be a UUID."},
                          email = {.name = "email", .required = true}, step = {.name = "step", .required = true},
                          verification_code = {.name = "verificationCode", .required = true};

static void add_problem(struct body *body, const char *field, const char *message)
{
    struct body_problems *p = &body->problems;
    if (message && p->count < BODY_PROBLEMS_MAX)
        p->at[p->count++] = (struct body_problem){field, message};
}

/* Keeps what is wrong with this field and has the next one read as if nothing were. */
static void end_field(struct fields *f, const struct field *field, struct body *body, enum err *ret)
{
    if (!f->err)
        return;
    *ret = f->err;
    add_problem(body, field->name, f->message);
    f->err = OK;
    f->message = NULL;
}

/* False when the text is not one JSON object. */
static bool is_object(struct fields *f, struct str text, struct body *ret)
{
    struct why why;
    if (!f->err)
        return true;
    AUTO(json) json_t *again = json_read_object(text, &why);
    if (!again)
        add_problem(ret, "body", arena_printf(f->arena, "The body is not one JSON object: %s.", why.text).at);
    return false;
}

static void read_common(struct fields *f, struct body *ret, enum err *e)
{
    struct str id = field_text(f, &correlation_id);
    if (id.at && str_copy(id, ret->correlation_id, sizeof ret->correlation_id))
        fields_fail(f, &correlation_id, "is too long");
    end_field(f, &correlation_id, ret, e);
    struct str address = field_text(f, &email);
    if (address.at && str_trim(address).len > EMAIL_MAX)
        fields_fail(f, &email, "is longer than 255 bytes");
    else if (address.at && email_normalise(f->arena, address, &ret->email))
        fields_fail(f, &email, "is not an e-mail address");
    end_field(f, &email, ret, e);
}

static void read_code(struct fields *f, const struct code_shape *shape, struct body *ret, enum err *e)
{
    struct str typed = field_text(f, &verification_code);
    if (typed.at && code_read(shape, typed, &ret->code))
        fields_fail(f, &verification_code,
                    shape->group ? "must be the letters and digits of the code, as mailed"
                                 : "must be the digits of the code, as mailed");
    end_field(f, &verification_code, ret, e);
}

enum err body_read_probe(struct arena *arena, struct str text, struct body *ret)
{
    *ret = (struct body){.step = BODY_MALFORMED};
    AUTO(fields) struct fields f = fields_read(arena, text, NULL, NULL);
    enum err e = OK;
    if (!is_object(&f, text, ret))
        return f.err;
    read_common(&f, ret, &e);
    return e;
}

enum err body_read_cleanup(struct arena *arena, const struct code_shape *shape, struct str text, struct body *ret)
{
    *ret = (struct body){.step = BODY_MALFORMED};
    AUTO(fields) struct fields f = fields_read(arena, text, NULL, NULL);
    enum body_step asked = BODY_MALFORMED;
    enum err e = OK;
    if (!is_object(&f, text, ret))
        return f.err;
    read_common(&f, ret, &e);
    struct str name = field_text(&f, &step);
    if (str_eq(name, STR("request-code")))
        asked = BODY_REQUEST_CODE;
    else if (str_eq(name, STR("validate-and-cleanup")))
        asked = BODY_VALIDATE;
    else
        fields_fail(&f, &step, "must be request-code or validate-and-cleanup");
    end_field(&f, &step, ret, &e);
    if (asked == BODY_VALIDATE)
        read_code(&f, shape, ret, &e);
    if (!e)
        ret->step = asked;
    return e;
}
