/* Private to src/pages: what the parts of `/account` share.
 *
 * The cookie `session` has the token of /auth/login, when it ends, and the customer that was chosen. It lasts 15 minutes from
 * the last page, and never longer than the token. The cookie `account` has what the next page says about the last form. */
#ifndef PAGES_ACCOUNT_H
#define PAGES_ACCOUNT_H

#include "pages/page.h"

struct account {
    const char *token;    /* NULL: signed out */
    const char *customer; /* chosen among several; NULL: none */
    int64_t until_s;      /* the token's end, seconds since 1970 */
};

/* Both on the loop; NULL after a refusal was sent. */
struct account *account_begin(struct page *p) MUST_CHECK;

/* For `answered`, before the page is written. */
void account_keep_session(struct page *p, const char *token, int64_t until_s, const char *customer);
/* Signs the browser out because of the endpoint's 401, and has the next page say why. */
void account_end_session(struct page *p);
/* What the next page says: `form` names the part of the page it belongs to, `say` the sentence account.SAY; the address may be
 * absent. */
void account_say(struct page *p, const char *form, const char *say, struct str email);
/* The same with the endpoint's error: account.error_CODE in lower case, or error.CODE. After a 429 the page counts down, and the
 * button that was used waits. */
void account_say_error(struct page *p, const char *form, struct str email);

/* The step with a field for a mailed code. What the last step knew of the code stays: its life, and when another may be asked
 * for. Call account_begin_code() on the loop, and one of the others for the answer. */
void account_begin_code(struct page *p);
bool account_must_wait_for_code(const struct page *p, const char *form, struct str email);
json_t *account_code_step(struct page *p, const char *form, struct str email); /* for account_keep() */
void account_keep(struct page *p, json_t *step, const char *say);
void account_keep_error(struct page *p, json_t *step, const char *button); /* "send" or "code": which one waits */

int64_t account_now_s(void);

/* account_rows.c: values for the templates, made of the endpoints' answers. */
void account_set_public(struct page *p, const json_t *participants);
void account_set_preview(struct page *p, const json_t *preview);
void account_set_countdown(struct page *p, const json_t *customer, const char *now);
/* "30 days" in the reader's language. */
void account_set_duration(struct page *p, const char *name, int64_t seconds);
/* "2026-12-15T14:32:07.123456Z" in microseconds since 1970; ERR_INPUT. */
enum err account_parse_time(const char *text, int64_t *ret_us) MUST_CHECK;

/* account_forms.c */
void account_form_sign_in(struct request *rq);
void account_form_code(struct request *rq);
void account_form_start_over(struct request *rq);
void account_form_choose(struct request *rq);
void account_form_delete(struct request *rq);
void account_form_delete_code(struct request *rq);
void account_form_take_back(struct request *rq);
void account_form_sign_out(struct request *rq);
void account_form_sign_out_everywhere(struct request *rq);

#endif
