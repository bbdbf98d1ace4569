/* The fields of a request's JSON body, read one by one; what is wrong is asked once, at the end:
 *
 *   static const struct field reason = {.name = "reason", .required = true, .bytes_max = 1000};
 *   AUTO(fields) struct fields f = fields_read(rq->arena, rq->body, "INVALID_BODY", "The body must be a JSON object.");
 *   hold->reason = field_copy(&f, &reason);
 *   if (!fields_refuse(&f, rq))
 *       …
 *
 * The first problem is kept; after it, fields are still read and further problems ignored. */
#ifndef API_FIELDS_H
#define API_FIELDS_H

#include "base/json.h"
#include "http/request.h"

struct field {
    const char *name;
    bool required;
    bool refuses_null; /* otherwise null counts as absent */
    size_t bytes_max;  /* of a string; 0: no limit but the body's */
    bool (*fits)(struct str text);
    const char *code,
        *message; /* of the refusal, whatever is wrong; NULL: INVALID_INPUT and "NAME is missing." or similar */
};

struct fields {
    struct arena *arena;
    json_t *body;
    enum err err;               /* OK, ERR_INPUT, or ERR_FULL when the arena is full */
    const char *code, *message; /* with ERR_INPUT; constants, or of the arena */
};

/* The code and message are for a body that is not one JSON object. */
struct fields fields_read(struct arena *arena, struct str body, const char *code, const char *message);
void fields_cleanup(struct fields *f);

/* A string, valid as long as the fields; absent when it is not there or wrong. */
struct str field_text(struct fields *f, const struct field *field);
/* The same as a C string of the arena; NULL when it is not there or wrong. */
const char *field_copy(struct fields *f, const struct field *field);
const char *field_uuid(struct fields *f, const struct field *field);
/* False when it is not there or wrong; then *ret is not touched. */
bool field_integer(struct fields *f, const struct field *field, int64_t min, int64_t max, int64_t *ret);

/* A problem that the caller found: "NAME what." unless the field has a message. */
void fields_fail(struct fields *f, const struct field *field, const char *what);

/* True after a problem was answered: 400, or 503 without memory. */
bool fields_refuse(const struct fields *f, struct request *rq);

#endif
