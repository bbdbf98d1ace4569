/* The fields of a form sent by a browser: application/x-www-form-urlencoded. */
#ifndef HTTP_FORM_H
#define HTTP_FORM_H

#include "http/request.h"

#define FORM_FIELDS_MAX 32

struct form {
    size_t count;
    struct form_field {
        struct str name, value; /* in the request's arena, with a NUL behind */
    } fields[FORM_FIELDS_MAX];
};

/* Only on the loop's thread, in the handler. ERR_INPUT: another content type, a malformed escape, text that is not UTF-8
 * without NUL, or too many fields. */
enum err form_read(struct request *rq, struct form *ret) MUST_CHECK;
/* A field's value, trimmed of nothing; absent when there is none. Of several with one name the first. */
struct str form_get(const struct form *form, const char *name);

#endif
