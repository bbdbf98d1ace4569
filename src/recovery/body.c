#include "recovery/body.h"

#include "api/fields.h"
#include "base/email.h"

/* What is wrong with a body is one error of the contract, so that no field has a message of its own. */
static const struct field correlation_id = {.name = "correlationId", .refuses_null = true, .fits = str_is_uuid},
                          email = {.name = "email", .required = true}, step = {.name = "step", .required = true},
                          verification_code = {.name = "verificationCode", .required = true};

static void read_common(struct fields *f, struct body *ret)
{
    struct str id = field_text(f, &correlation_id), address = field_text(f, &email);
    if (id.at && str_copy(id, ret->correlation_id, sizeof ret->correlation_id))
        fields_fail(f, &correlation_id, "is too long");
    if (address.at && email_normalise(f->arena, address, &ret->email))
        fields_fail(f, &email, "is not an address");
}

enum err body_read_probe(struct arena *arena, struct str text, struct body *ret)
{
    *ret = (struct body){.step = BODY_MALFORMED};
    AUTO(fields) struct fields f = fields_read(arena, text, NULL, NULL);
    read_common(&f, ret);
    return f.err;
}

enum err body_read_cleanup(struct arena *arena, const struct code_shape *shape, struct str text, struct body *ret)
{
    *ret = (struct body){.step = BODY_MALFORMED};
    AUTO(fields) struct fields f = fields_read(arena, text, NULL, NULL);
    read_common(&f, ret);
    struct str name = field_text(&f, &step);
    enum body_step asked = BODY_MALFORMED;
    if (str_eq(name, STR("request-code"))) {
        asked = BODY_REQUEST_CODE;
    } else if (str_eq(name, STR("validate-and-cleanup"))) {
        struct str typed = field_text(&f, &verification_code);
        asked = BODY_VALIDATE;
        if (typed.at && code_read(shape, typed, &ret->code))
            fields_fail(&f, &verification_code, "is not a code");
    } else {
        fields_fail(&f, &step, "is not a step");
    }
    if (!f.err)
        ret->step = asked;
    return f.err;
}
