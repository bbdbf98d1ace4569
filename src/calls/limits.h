/* Private to src/calls: how long what a switch sends may be, in bytes. */
#ifndef CALLS_LIMITS_H
#define CALLS_LIMITS_H

#define CALL_NAME_MAX 255 /* a number, an address or a SIP Call-ID */
#define CALL_TAG_MAX 128
#define CALL_REASON_MAX 64
#define CALL_CSEQ_MAX INT64_C(4294967295)

/* For fields_read(). */
#define CALL_BODY_PROBLEM "INVALID_INPUT", "The body must be a JSON object."

#endif
