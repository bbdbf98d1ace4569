#include "recovery/body.h"

#include "base/email.h"
#include "base/json.h"

static enum err read_who(struct arena *arena, const json_t *body, struct body *ret)
{
    struct str correlation_id, email;
    if (!body)
        return ERR_INPUT;
    enum err e = json_get_str(body, "correlationId", &correlation_id);
    if (e && e != ERR_MISSING)
        return e;
    if (!e && (!str_is_uuid(correlation_id) ||
               (e = str_copy(correlation_id, ret->correlation_id, sizeof ret->correlation_id))))
        return ERR_INPUT;
    e = json_get_str(body, "email", &email);
    return e ? e : email_normalise(arena, email, &ret->email);
}

enum err body_read_probe(struct arena *arena, struct str text, struct body *ret)
{
    *ret = (struct body){.step = BODY_MALFORMED};
    AUTO(json) json_t *body = json_read_object(text, NULL);
    return read_who(arena, body, ret);
}

enum err body_read_cleanup(struct arena *arena, const struct code_shape *shape, struct str text, struct body *ret)
{
    struct str step, typed;
    *ret = (struct body){.step = BODY_MALFORMED};
    AUTO(json) json_t *body = json_read_object(text, NULL);
    enum err e = read_who(arena, body, ret);
    if (e || (e = json_get_str(body, "step", &step)))
        return e;
    if (str_eq(step, STR("request-code"))) {
        ret->step = BODY_REQUEST_CODE;
        return OK;
    }
    if (!str_eq(step, STR("validate-and-cleanup")))
        return ERR_INPUT;
    if ((e = json_get_str(body, "verificationCode", &typed)) || (e = code_read(shape, typed, &ret->code)))
        return e;
    ret->step = BODY_VALIDATE;
    return OK;
}
