#include <string.h>

#include "base/defs.h"
#include "pages/recover.h"

const char *recover_found(const json_t *data)
{
    const char *status = json_string_value(json_object_get(data, "status"));
    const json_t *has_company = json_object_get(data, "hasCompanyData");
    if (!status)
        return "unknown";
    if (strcmp(status, "not_registered") == 0)
        return "not_registered";
    if (!json_is_boolean(has_company))
        return "unknown";
    bool verified = strcmp(status, "registered_verified") == 0;
    if (json_is_true(has_company))
        return verified ? "complete" : "unconfirmed";
    return verified ? "verified" : "unverified";
}

/* By the last digit of ORPHAN_CLEANUP_00N. */
static const char *const problems[2][10] = {
    {"fault", "expired", "wrong", "limited", "not_registered", "complete", "fault", "malformed", "mail", "busy"},
    {"fault", "malformed", "wrong_digits", "limited", "not_registered", "complete", "fault", "malformed", "mail",
     "busy"},
};

/* Which field cannot be read, by the details of a malformed request. */
static const char *wrong_field(const json_t *error, bool six_digits)
{
    const json_t *first = json_array_get(json_object_get(error, "details"), 0);
    const char *field = json_string_value(json_object_get(first, "field"));
    if (field && strcmp(field, "email") == 0)
        return "bad_address";
    if (field && strcmp(field, "verificationCode") == 0)
        return six_digits ? "bad_digits" : "bad_code";
    return "malformed";
}

const char *recover_problem(const json_t *answer, bool six_digits)
{
    static const char prefix[] = "ORPHAN_CLEANUP_00";
    const json_t *error = json_object_get(answer, "error");
    const char *code = json_string_value(json_object_get(error, "code"));
    if (!code || strncmp(code, prefix, strlen(prefix)) != 0 || strlen(code) != strlen(prefix) + 1)
        return "fault";
    char digit = code[strlen(prefix)];
    const char *problem = digit >= '0' && digit <= '9' ? problems[six_digits][digit - '0'] : "fault";
    return strcmp(problem, "malformed") == 0 ? wrong_field(error, six_digits) : problem;
}
