/* The forms of `/account`: each asks the endpoint that programs ask, then sends the reader back to the page. */
#include <string.h>

#include "base/clock.h"
#include "pages/account.h"

#define NO_EMAIL ((struct str){NULL, 0})
#define RESEND_S 60
#define TYPED_MAX ((size_t)40)

static bool back(struct page *p)
{
    return page_redirect(p, "/account");
}

/* A form of someone who is signed in; NULL after the reader was sent to the page, which asks to sign in. */
static struct page *begin_signed_in(struct request *rq, const struct account **ret)
{
    struct page *p = page_begin_form(rq);
    struct account *a = p ? account_begin(p) : NULL;
    if (a && !a->token) {
        account_say(p, "notice", "session_ended", NO_EMAIL);
        page_go(p, "/account");
        return NULL;
    }
    *ret = a;
    return a ? p : NULL;
}

/* --- signing in --- */

static struct str typed_email(const struct page *p)
{
    struct str email = page_field(p, "email");
    return email.at ? email : STR("");
}

/* A wrong code stays in its field. */
static void keep_typed(json_t *step, struct str code)
{
    if (code.at && code.len <= TYPED_MAX)
        json_object_set_new(step, "typed", json_stringn(code.at, code.len));
}

static bool signed_in(struct page *p)
{
    json_t *answer = page_answer(p);
    const char *token = json_string_value(json_object_get(answer, "token"));
    struct str code = page_field(p, "code");
    if (p->rq->reply.status == 200 && token) {
        account_keep_session(p, token, account_now_s() + json_integer_value(json_object_get(answer, "expires_in")),
                             NULL);
        page_forget(p, "account");
    } else if (code.at) {
        json_t *step = account_code_step(p, "code", typed_email(p));
        keep_typed(step, code);
        if (p->rq->reply.status == 401)
            account_keep(p, step, "error_wrong_code");
        else
            account_keep_error(p, step, "code");
    } else {
        account_say_error(p, "password", typed_email(p));
    }
    return back(p);
}

/* With `password`, or with `code`. */
void account_form_sign_in(struct request *rq)
{
    struct page *p = page_begin_form(rq);
    if (!p)
        return;
    account_begin_code(p);
    struct str email = typed_email(p), code = page_field(p, "code"), password = form_get(&p->form, "password");
    struct str body = code.at ? page_json(p, "{s:s%,s:s%}", "email", email.at, email.len, "code", code.at, code.len)
                              : page_json(p, "{s:s%,s:s%}", "email", email.at, email.len, "password",
                                          password.at ? password.at : "", password.len);
    page_ask(p, &(struct forward){.method = METHOD_POST, .path = STR("/auth/login"), .body = body}, signed_in);
}

/* --- asking for a code, to sign in or as a proof --- */

static void keep_sent(struct page *p, const char *form, struct str email)
{
    json_t *step = account_code_step(p, form, email);
    int64_t life_s = json_integer_value(json_object_get(page_answer(p), "expires_in"));
    if (life_s)
        json_object_set_new(step, "expires", json_integer(clock_installation_us() / 1000000 + life_s));
    json_object_set_new(step, "resend", json_integer(account_now_s() + RESEND_S));
    account_keep(p, step, "code_sent");
}

/* A code that was asked for in another browser; a mail's link may have brought it along. */
static bool expects_code(struct page *p, const char *form, struct str email)
{
    struct str code = page_field(p, "code");
    if (!code.len && !page_field(p, "have").len)
        return false;
    json_t *step = account_code_step(p, form, email);
    keep_typed(step, code);
    account_keep(p, step, "code_elsewhere");
    page_go(p, "/account");
    return true;
}

/* Whoever asks again too soon gets the first mail and no other: the wait is the page's own, and spares the limit. */
static bool is_too_soon(struct page *p, const char *form, struct str email)
{
    if (!account_must_wait_for_code(p, form, email))
        return false;
    account_keep(p, account_code_step(p, form, email), "error_too_soon");
    page_go(p, "/account");
    return true;
}

/* From the step with the code's field a refusal leads back to it: the code that was mailed before still counts. */
static bool code_asked(struct page *p)
{
    struct str email = typed_email(p);
    if (p->rq->reply.status == 202)
        keep_sent(p, "code", email);
    else if (page_field(p, "again").len)
        account_keep_error(p, account_code_step(p, "code", email), "send");
    else
        account_say_error(p, "mail", email);
    return back(p);
}

void account_form_code(struct request *rq)
{
    struct page *p = page_begin_form(rq);
    if (!p)
        return;
    struct str email = typed_email(p);
    account_begin_code(p);
    if (!expects_code(p, "code", email) && !is_too_soon(p, "code", email))
        page_ask(p,
                 &(struct forward){.method = METHOD_POST,
                                   .path = STR("/auth/code"),
                                   .body = page_json(p, "{s:s%}", "email", email.at, email.len)},
                 code_asked);
}

/* Forgets a code that was asked for. */
void account_form_start_over(struct request *rq)
{
    struct page *p = page_begin_form(rq);
    if (!p)
        return;
    page_forget(p, "account");
    page_go(p, "/account");
}

/* --- with a session --- */

void account_form_choose(struct request *rq)
{
    const struct account *a;
    struct page *p = begin_signed_in(rq, &a);
    if (!p)
        return;
    struct str customer = page_field(p, "customer");
    page_forget(p, "account");
    account_keep_session(p, a->token, a->until_s, customer.at && str_is_uuid(customer) ? customer.at : NULL);
    page_go(p, "/account");
}

/* The form names the customer that its page showed: another tab may have chosen another since. */
static const char *customer_of_form(const struct page *p)
{
    struct str customer = page_field(p, "customer");
    return customer.at && str_is_uuid(customer) ? customer.at : NULL;
}

static void keep_wrong_proof(struct page *p)
{
    json_t *step = account_code_step(p, "proof", NO_EMAIL);
    keep_typed(step, page_field(p, "code"));
    account_keep_error(p, step, "code");
}

static bool deletion_answered(struct page *p)
{
    if (p->rq->reply.status == 401)
        account_end_session(p);
    else if (p->rq->reply.status == 200)
        page_forget(p, "account");
    else if (page_field(p, "code").at)
        keep_wrong_proof(p);
    else
        account_say_error(p, "proof", NO_EMAIL);
    return back(p);
}

void account_form_delete(struct request *rq)
{
    const struct account *a;
    struct page *p = begin_signed_in(rq, &a);
    if (!p)
        return;
    account_begin_code(p);
    struct str password = form_get(&p->form, "password"), phrase = page_field(p, "confirmation_phrase"),
               code = page_field(p, "code");
    struct str proof = password.at ? password : phrase.at ? phrase : code;
    const char *kind = password.at ? "password" : phrase.at ? "confirmation_phrase" : "code";
    page_ask(p,
             &(struct forward){.method = METHOD_POST,
                               .path = STR("/auth/unregister"),
                               .body = page_json(p, "{s:s%}", kind, proof.at ? proof.at : "", proof.len),
                               .bearer = a->token,
                               .customer = customer_of_form(p)},
             deletion_answered);
}

static bool proof_code_asked(struct page *p)
{
    if (p->rq->reply.status == 202)
        keep_sent(p, "proof", NO_EMAIL);
    else
        account_keep_error(p, account_code_step(p, "proof", NO_EMAIL), "send");
    return back(p);
}

/* The address is the session's: nobody has a code mailed to another by this form. */
static bool address_known(struct page *p)
{
    json_t *session = page_answer(p);
    const char *email = json_string_value(json_object_get(session, "email"));
    if (p->rq->reply.status != 200 || !email) {
        account_end_session(p);
        return back(p);
    }
    page_ask(p,
             &(struct forward){
                 .method = METHOD_POST, .path = STR("/auth/code"), .body = page_json(p, "{s:s}", "email", email)},
             proof_code_asked);
    return false;
}

void account_form_delete_code(struct request *rq)
{
    const struct account *a;
    struct page *p = begin_signed_in(rq, &a);
    if (!p)
        return;
    account_begin_code(p);
    if (!expects_code(p, "proof", NO_EMAIL) && !is_too_soon(p, "proof", NO_EMAIL))
        page_ask(p, &(struct forward){.method = METHOD_GET, .path = STR("/auth/session"), .bearer = a->token},
                 address_known);
}

/* 404: another browser took it back first. */
static bool recovery_answered(struct page *p)
{
    int status = p->rq->reply.status;
    if (status == 401)
        account_end_session(p);
    else if (status == 200 || status == 404)
        account_say(p, "recovered", "recovered", NO_EMAIL);
    else
        account_say_error(p, "take-back", NO_EMAIL);
    return back(p);
}

void account_form_take_back(struct request *rq)
{
    const struct account *a;
    struct page *p = begin_signed_in(rq, &a);
    if (p)
        page_ask(p,
                 &(struct forward){.method = METHOD_DELETE,
                                   .path = STR("/auth/unregister"),
                                   .bearer = a->token,
                                   .customer = customer_of_form(p)},
                 recovery_answered);
}

/* --- signing out --- */

static bool sign_out_answered(struct page *p)
{
    page_forget(p, "session");
    account_say(p, "notice", "signed_out", NO_EMAIL);
    return back(p);
}

/* The other sessions go on unless the endpoint said that they ended. */
static bool sign_out_everywhere_answered(struct page *p)
{
    int status = p->rq->reply.status;
    if (status == 204) {
        page_forget(p, "session");
        account_say(p, "notice", "signed_out_everywhere", NO_EMAIL);
    } else if (status == 401) {
        account_end_session(p);
    } else {
        return page_write(p, "failure", TEXT_PAGE_FAILURE_TITLE, 503);
    }
    return back(p);
}

static void end_sessions(struct request *rq, const char *body, bool (*answered)(struct page *p))
{
    const struct account *a;
    struct page *p = begin_signed_in(rq, &a);
    if (p)
        page_ask(p,
                 &(struct forward){
                     .method = METHOD_POST, .path = STR("/auth/logout"), .body = str_of(body), .bearer = a->token},
                 answered);
}

void account_form_sign_out(struct request *rq)
{
    end_sessions(rq, "{}", sign_out_answered);
}

void account_form_sign_out_everywhere(struct request *rq)
{
    end_sessions(rq, "{\"everywhere\":true}", sign_out_everywhere_answered);
}
