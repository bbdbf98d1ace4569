/* JSON requests: the bodies of the probe and of both steps of the clean-up, under both contracts. */
#include "base/email.h"
#include "base/json.h"
#include "fuzz.h"
#include "recovery/body.h"
#include "recovery/contract.h"

static void check_who(struct arena *arena, enum err e, const struct body *body)
{
    struct str again;
    PROMISE(e == OK || e == ERR_INPUT || e == ERR_MISSING);
    PROMISE(*body->correlation_id == '\0' || str_is_uuid(str_of(body->correlation_id)));
    if (e == OK)
        PROMISE(email_normalise(arena, body->email, &again) == OK && str_eq(again, body->email));
}

/* What was understood, written anew, is understood the same. */
static void check_written(struct arena *arena, const struct contract *contract, const struct body *body)
{
    AUTO(buf) struct buf out = buf_new(4096);
    struct json_writer w = json_to(&out);
    struct body again;
    char shown[CODE_TEXT_MAX];
    json_open(&w, '{');
    json_key(&w, "step");
    json_str(&w, body->step == BODY_VALIDATE ? STR("validate-and-cleanup") : STR("request-code"));
    json_key(&w, "email");
    json_str(&w, body->email);
    if (body->step == BODY_VALIDATE) {
        code_show(&contract->code, &body->code, shown);
        json_key(&w, "verificationCode");
        json_str(&w, str_of(shown));
    }
    if (*body->correlation_id) {
        json_key(&w, "correlationId");
        json_str(&w, str_of(body->correlation_id));
    }
    json_close(&w, '}');
    PROMISE(body_read_cleanup(arena, &contract->code, buf_str(&out), &again) == OK);
    PROMISE(again.step == body->step && str_eq(again.email, body->email));
    PROMISE(strcmp(again.correlation_id, body->correlation_id) == 0);
    PROMISE(strcmp(again.code.symbols, body->code.symbols) == 0);
}

static void check_cleanup(struct arena *arena, const struct contract *contract, struct str text, enum err probe_err,
                          const struct body *probe)
{
    struct body body;
    enum err e = body_read_cleanup(arena, &contract->code, text, &body);
    check_who(arena, e, &body);
    PROMISE((e == OK) == (body.step != BODY_MALFORMED));
    PROMISE(strcmp(body.correlation_id, probe->correlation_id) == 0);
    if (e)
        return;
    PROMISE(probe_err == OK && str_eq(probe->email, body.email));
    check_written(arena, contract, &body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = fuzz_arena();
    struct str text = fuzz_text(data, size);
    struct body probe;
    enum err e = body_read_probe(arena, text, &probe);
    check_who(arena, e, &probe);
    check_cleanup(arena, &contract_cleanup_v1, text, e, &probe);
    check_cleanup(arena, &contract_registration_recovery, text, e, &probe);
    fuzz_text_free(text);
    arena_free(arena);
    return 0;
}
