#include "recovery/contract.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "recovery/body.h"

const struct contract contract_cleanup_v1 = {
    .name = "cleanup-v1",
    .malformed = CLEANUP_MALFORMED,
    .expired = CLEANUP_EXPIRED,
    .code = CODE_SHAPE_LETTERS,
    .code_life_s = 300,
    .limits_validation = true,
    .code_sent = "Verification code sent to email",
    .user_deleted = "User deleted successfully",
    .blocked = "Your account has other data and cannot be deleted here. Please log in or contact support.",
    .errors =
        {
            [CLEANUP_EXPIRED] = {404, "Verification code expired. Please request a new code."},
            [CLEANUP_WRONG_CODE] = {401, "Invalid verification code. Please check your email and try again."},
            [CLEANUP_RATE_LIMITED] = {429, "Too many requests. Please wait %s before trying again."},
            [CLEANUP_UNKNOWN_USER] = {404, "This email is not registered. Please sign up."},
            [CLEANUP_NOT_ORPHANED] = {409, "Your account is active. Please log in instead."},
            [CLEANUP_FAULT] = {500, "Something went wrong on our side. Please try again in a few seconds."},
            [CLEANUP_MALFORMED] = {400, "Invalid request. Please check the fields and their format and try again."},
            [CLEANUP_MAIL_FAILED] = {503, "The email could not be sent. Please try again later or contact support."},
            [CLEANUP_BUSY] = {409, "Operation already in progress for this email"},
        },
};

const struct contract contract_registration_recovery = {
    .name = "registration-recovery",
    .malformed = CLEANUP_EXPIRED,
    .expired = CLEANUP_WRONG_CODE,
    .code = {.symbols = 6, .alphabet = "0123456789", .group = 0, .also_well_formed = ""},
    .code_life_s = 600,
    .limits_validation = false,
    .code_sent =
        "A verification code has been sent to your email address. Please check your inbox and enter the code to "
        "complete account cleanup.",
    .user_deleted =
        "Your account has been successfully deleted. You can now register again with the same email address.",
    .blocked = "User has other data and cannot be deleted here. Please log in or contact support.",
    .errors =
        {
            [CLEANUP_EXPIRED] = {400, "Invalid request body. Please check your input and try again."},
            [CLEANUP_WRONG_CODE] = {400, "Invalid verification code. Please check the code and try again."},
            [CLEANUP_RATE_LIMITED] = {429, "Rate limit exceeded. Too many requests from this IP address. Please try "
                                           "again later."},
            [CLEANUP_UNKNOWN_USER] = {404, "User not found. The account may have been deleted already."},
            [CLEANUP_NOT_ORPHANED] = {400, "User has associated data and cannot be deleted."},
            [CLEANUP_FAULT] = {500, "An unexpected error occurred. Please try again later."},
            [CLEANUP_MALFORMED] = {400, "Invalid request body. Please check your input and try again."},
            [CLEANUP_MAIL_FAILED] = {500, "Failed to send verification email. Please try again later."},
            [CLEANUP_BUSY] = {409, "Operation already in progress for this email. Please wait and try again."},
        },
};

const struct contract *contract_named(struct str name)
{
    static const struct contract *const all[] = {&contract_cleanup_v1, &contract_registration_recovery};
    for (size_t i = 0; i < COUNT_OF(all); i++)
        if (str_eq(name, str_of(all[i]->name)))
            return all[i];
    return NULL;
}

struct refusal {
    const char *code, *message;
    int status;
    int64_t retry_after;                  /* 0: none */
    const struct body_problems *problems; /* NULL: none */
};

/* What both forms end with. */
static void write_rest(struct json_writer *w, const struct refusal *r)
{
    if (r->retry_after) {
        json_key(w, "retryAfter");
        json_i64(w, r->retry_after);
    }
    if (!r->problems || !r->problems->count)
        return;
    json_key(w, "details");
    json_open(w, '[');
    for (size_t i = 0; i < r->problems->count; i++) {
        json_open(w, '{');
        json_key(w, "field");
        json_str(w, str_of(r->problems->at[i].field));
        json_key(w, "message");
        json_str(w, str_of(r->problems->at[i].message));
        json_close(w, '}');
    }
    json_close(w, ']');
}

static void write_envelope(struct json_writer *w, const struct request *rq, const struct refusal *r)
{
    json_open(w, '{');
    json_key(w, "success");
    json_bool(w, false);
    json_key(w, "message");
    json_str(w, str_of(r->message));
    json_key(w, "correlationId");
    json_str(w, str_of(rq->correlation_id));
    json_key(w, "error");
    json_open(w, '{');
    json_key(w, "code");
    json_str(w, str_of(r->code));
    json_key(w, "message");
    json_str(w, str_of(r->message));
    json_key(w, "httpStatus");
    json_i64(w, r->status);
    write_rest(w, r);
    json_close(w, '}');
    json_close(w, '}');
}

/* RFC 9457. */
static void write_problem(struct json_writer *w, const struct request *rq, const struct refusal *r)
{
    json_open(w, '{');
    json_key(w, "type");
    json_str(w, STR("about:blank"));
    json_key(w, "title");
    json_str(w, str_of(r->message));
    json_key(w, "status");
    json_i64(w, r->status);
    json_key(w, "code");
    json_str(w, str_of(r->code));
    json_key(w, "correlationId");
    json_str(w, str_of(rq->correlation_id));
    write_rest(w, r);
    json_close(w, '}');
}

static void refuse(struct request *rq, enum cleanup_error error, struct refusal r)
{
    char code[32];
    snprintf(code, sizeof code, "ORPHAN_CLEANUP_%03d", (int)error);
    r.code = code;
    AUTO(buf) struct buf out = buf_new(2048);
    struct json_writer w = json_to(&out);
    if (rq->wants_problem)
        write_problem(&w, rq, &r);
    else
        write_envelope(&w, rq, &r);
    reply_body(rq, rq->wants_problem ? "application/problem+json" : "application/json",
               arena_copy(rq->arena, buf_str(&out)));
    rq->reply.status = r.status;
    rq->reply.outcome = arena_copy(rq->arena, str_of(code)).at;
}

void contract_refuse_as(struct request *rq, const struct contract *contract, enum cleanup_error error, int status,
                        const char *message)
{
    refuse(rq, error,
           (struct refusal){.message = message ? message : contract->errors[error].message, .status = status});
}

void contract_refuse_limited(struct request *rq, const struct contract *contract, struct str wait, int64_t seconds)
{
    const char *sentence = contract->errors[CLEANUP_RATE_LIMITED].message, *place = strstr(sentence, "%s");
    struct str message =
        place ? arena_printf(rq->arena, "%.*s%s%s", (int)(place - sentence), sentence, wait.at, place + 2)
              : str_of(sentence);
    refuse(rq, CLEANUP_RATE_LIMITED,
           (struct refusal){
               .message = message.at, .status = contract->errors[CLEANUP_RATE_LIMITED].status, .retry_after = seconds});
}

void contract_refuse(struct request *rq, const struct contract *contract, enum cleanup_error error)
{
    contract_refuse_as(rq, contract, error, contract->errors[error].status, NULL);
}

void contract_refuse_malformed(struct request *rq, const struct contract *contract,
                               const struct body_problems *problems)
{
    enum cleanup_error error = contract->malformed;
    refuse(rq, error,
           (struct refusal){.message = contract->errors[error].message,
                            .status = contract->errors[error].status,
                            .problems = problems});
}

void contract_family_refuse(struct request *rq, int status)
{
    const struct contract *contract = rq->family->context;
    switch (status) {
    case 404:
        contract_refuse_as(rq, contract, contract->malformed, status, "There is no such function.");
        return;
    case 405:
        contract_refuse_as(rq, contract, contract->malformed, status, "This function takes POST requests only.");
        return;
    case 413:
        contract_refuse_as(rq, contract, contract->malformed, status, "The request body is larger than 16 KiB.");
        return;
    case 431:
        contract_refuse_as(rq, contract, contract->malformed, status, "The request headers are larger than 14 KiB.");
        return;
    case 503:
        contract_refuse_as(rq, contract, CLEANUP_FAULT, status, NULL);
        return;
    default:
        contract_refuse_as(rq, contract, contract->malformed, status, NULL);
        return;
    }
}
