/* The two published contracts of registration recovery, as constant tables, and the envelope that serves both. */
#ifndef RECOVERY_CONTRACT_H
#define RECOVERY_CONTRACT_H

#include "credentials/codes.h"
#include "http/router.h"

/* ORPHAN_CLEANUP_00N */
enum cleanup_error {
    CLEANUP_EXPIRED = 1, /* under registration-recovery: malformed */
    CLEANUP_WRONG_CODE = 2,
    CLEANUP_RATE_LIMITED = 3,
    CLEANUP_UNKNOWN_USER = 4,
    CLEANUP_NOT_ORPHANED = 5,
    CLEANUP_FAULT = 6,
    CLEANUP_MALFORMED = 7,
    CLEANUP_MAIL_FAILED = 8,
    CLEANUP_BUSY = 9,
};

struct body_problems; /* recovery/body.h */

struct contract {
    const char *name;
    enum cleanup_error malformed; /* the error for a body that cannot be read */
    enum cleanup_error expired;   /* for a code that is expired, used up or was never sent */
    struct code_shape code;
    int64_t code_life_s;
    bool limits_validation;               /* the e-mail tier counts the second step too, in a bucket of its own */
    const char *code_sent, *user_deleted; /* messages of success */
    const char *blocked;                  /* of 005 when rows of another table keep the user from being deleted */
    struct {
        int status;
        const char *message;
    } errors[10]; /* by enum cleanup_error */
};

extern const struct contract contract_cleanup_v1, contract_registration_recovery;

/* NULL when there is none of that name. */
const struct contract *contract_named(struct str name);

/* Writes {"success":false,"message":…,"correlationId":…,"error":{…}} with the contract's status and message. */
void contract_refuse(struct request *rq, const struct contract *contract, enum cleanup_error error);
/* The same with another status or message (NULL: the contract's). */
void contract_refuse_as(struct request *rq, const struct contract *contract, enum cleanup_error error, int status,
                        const char *message);
/* The contract's error for a malformed body, with what is wrong in "details". */
void contract_refuse_malformed(struct request *rq, const struct contract *contract,
                               const struct body_problems *problems);
/* 003, with how long to wait: in the message, if the contract's has %s, and in seconds. */
void contract_refuse_limited(struct request *rq, const struct contract *contract, struct str wait, int64_t seconds);
/* For the family /functions/v1/, whose context is a struct contract. */
void contract_family_refuse(struct request *rq, int status);

#endif
