/* Private to src/customers: codes that sign in without a password (reclaim.sign_in_codes). */
#ifndef CUSTOMERS_SIGN_IN_CODES_H
#define CUSTOMERS_SIGN_IN_CODES_H

#include "api/code_mail.h"
#include "customers/customers.h"
#include "customers/sessions.h"

struct code_proof {
    struct customers *context;
    struct str email, typed;
    const struct ip *client;
    int64_t deadline_ns;
};
/* Begins a session if the code is the address's and was not used, on a worker. Otherwise ret->id is "", and one of the
 * tries of the client's network is taken. */
enum err sign_in_code_use(const struct code_proof *proof, struct pg *pg, struct session *ret) MUST_CHECK;
/* The same as the proof of this user, who is signed in: no session begins. */
enum err sign_in_code_spend(const struct code_proof *proof, struct pg *pg, const char *user_id,
                            bool *ret_right) MUST_CHECK;

extern const struct code_mail sign_in_code_words;
/* mail_template.compose of "sign-in-code", for an item that was taken over. */
enum err sign_in_code_mail_compose(void *customers, struct pg *pg, const json_t *payload, int64_t deadline_ns,
                                   struct mail *ret);

#endif
