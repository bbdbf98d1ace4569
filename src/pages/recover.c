/* `/recover`: frees an address that is taken by a registration which never finished.
 *
 * Address → what the probe found → a mailed code → deleted. What one step knows for the next is in a sealed cookie:
 *   {"step":"found","email":…,"found":"verified","sent":…,"expires":…,"resend":…,"typed":…,"error":…,"wait":…,"waits":"send","reference":…} */
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/email.h"
#include "pages/page.h"
#include "pages/recover.h"
#include "pages/routes.h"

#define COOKIE "recover"
#define LIFE_S INT64_C(3600)
#define RESEND_S 60
#define TYPED_MAX ((size_t)40)

static const struct str probe_path = {"/functions/v1/check-email-status", 32},
                        cleanup_path = {"/functions/v1/cleanup-orphaned-user", 35};

static void show(struct page *p, const json_t *state);
static void take_address(struct page *p);
static void ask_for_code(struct page *p, struct str email);
static void take_code(struct page *p);
static void expect_code(struct page *p, struct str email, struct str code);
static bool probed(struct page *p);
static bool code_asked(struct page *p);
static bool code_checked(struct page *p);

/* GET. With ?email= it begins again, with that address filled in. */
static void recover_handle(struct request *rq)
{
    struct page *p = page_begin(rq);
    struct str email = {NULL, 0};
    if (!p)
        return;
    if (request_query_text(rq, "email", &email) || email.len > EMAIL_MAX)
        email = STR("");
    json_t *state = email.at ? NULL : page_state(p, COOKIE);
    page_set_text(p, "email", email.at ? str_trim(email) : email);
    show(p, state);
}

/* POST: each step sends the form's button, "step". */
static void recover_form_handle(struct request *rq)
{
    struct page *p = page_begin_form(rq);
    if (!p)
        return;
    const json_t *state = page_state(p, COOKIE);
    struct str step = page_field(p, "step"), email = {NULL, 0};
    page_set(p, "state", state ? json_deep_copy(state) : json_object());
    if (str_eq(step, STR("address"))) {
        take_address(p);
        return;
    }
    if (json_get_str(state, "email", &email)) {
        page_keep(p, COOKIE, json_pack("{s:s}", "error", "ended"), LIFE_S);
        page_go(p, "/recover");
    } else if (str_eq(step, STR("code"))) {
        take_code(p);
    } else if (str_eq(step, STR("have-code"))) {
        expect_code(p, email, page_field(p, "code"));
    } else {
        ask_for_code(p, email);
    }
}

const struct route recover_routes[] = {
    {.method = METHOD_GET, .path = "/recover", .handle = recover_handle},
    {.method = METHOD_POST, .path = "/recover", .handle = recover_form_handle},
    {0},
};

/* --- the steps --- */

static bool has_probe(const struct page *p)
{
    return !p->pages->config.uniform && !p->pages->config.probe_off;
}

/* A copy of the state, with the last problem gone: an endpoint's answer may have two versions. */
static json_t *next_state(const struct page *p, const char *step)
{
    json_t *next = json_deep_copy(json_object_get(p->values, "state"));
    if (step)
        json_object_set_new(next, "step", json_string(step));
    json_object_del(next, "error");
    json_object_del(next, "wait");
    json_object_del(next, "waits");
    json_object_del(next, "typed");
    json_object_set_new(next, "reference", json_string(p->rq->correlation_id));
    return next;
}

static int64_t now_s(void)
{
    return clock_wall_us() / 1000000;
}

/* An address begins a new flow. Who comes by the link of a mail brings the code along. */
static void take_address(struct page *p)
{
    struct str email = page_field(p, "email"), code = page_field(p, "code");
    page_set(p, "state", json_object());
    json_t *state = json_object_get(p->values, "state");
    if (email.at && email.len <= EMAIL_MAX)
        json_object_set_new(state, "email", json_stringn(email.at, email.len));
    if (code.len && email.len) {
        expect_code(p, email, code);
    } else if (has_probe(p)) {
        page_ask(p,
                 &(struct forward){.method = METHOD_POST,
                                   .path = probe_path,
                                   .body = page_json(p, "{s:s%}", "email", email.at ? email.at : "", email.len)},
                 probed);
    } else {
        ask_for_code(p, email.at ? email : STR(""));
    }
}

/* Whoever asks again too soon gets the first mail and no other: the wait is the page's own, and spares the limit. */
static void ask_for_code(struct page *p, struct str email)
{
    int64_t resend = json_integer_value(json_object_get(json_object_get(p->values, "state"), "resend"));
    if (resend > now_s()) {
        json_t *next = next_state(p, NULL);
        json_object_set_new(next, "error", json_string("too_soon"));
        page_keep(p, COOKIE, next, LIFE_S);
        page_go(p, "/recover");
        return;
    }
    page_ask(
        p,
        &(struct forward){.method = METHOD_POST,
                          .path = cleanup_path,
                          .body = page_json(p, "{s:s,s:s%}", "step", "request-code", "email", email.at, email.len)},
        code_asked);
}

/* Digits are mailed without groups, but people write them in groups. */
static struct str without_spaces(struct page *p, struct str typed)
{
    struct str copy = arena_copy(p->rq->arena, typed);
    char *to = (char *)(uintptr_t)copy.at;
    copy.len = 0;
    for (size_t i = 0; to && i < typed.len; i++)
        if (typed.at[i] != ' ' && typed.at[i] != '-')
            to[copy.len++] = typed.at[i];
    return copy;
}

static void take_code(struct page *p)
{
    struct str email = {NULL, 0}, code = page_field(p, "code");
    json_t *state = json_object_get(p->values, "state");
    if (!code.at || json_get_str(state, "email", &email))
        code = STR("");
    if (code.len <= TYPED_MAX)
        json_object_set_new(state, "code", json_stringn(code.at, code.len));
    if (p->pages->config.six_digits)
        code = without_spaces(p, code);
    page_ask(p,
             &(struct forward){.method = METHOD_POST,
                               .path = cleanup_path,
                               .body = page_json(p, "{s:s,s:s%,s:s%}", "step", "validate-and-cleanup", "email",
                                                 email.at ? email.at : "", email.len, "verificationCode",
                                                 code.at ? code.at : "", code.len)},
             code_checked);
}

/* A code that was asked for elsewhere. */
static void expect_code(struct page *p, struct str email, struct str code)
{
    json_t *next = next_state(p, "code");
    json_object_set_new(next, "email", json_stringn(email.at, email.len <= EMAIL_MAX ? email.len : 0));
    json_object_set_new(next, "sent", json_string("elsewhere"));
    if (code.at && code.len <= TYPED_MAX)
        json_object_set_new(next, "typed", json_stringn(code.at, code.len));
    page_keep(p, COOKIE, next, LIFE_S);
    page_go(p, "/recover");
}

/* --- the answers --- */

static bool keep_and_go(struct page *p, json_t *next)
{
    page_keep(p, COOKIE, next, LIFE_S);
    return page_redirect(p, "/recover");
}

/* The step stays, what was typed too. A limit makes the button wait that was used: others have limits of their own. */
static bool keep_problem(struct page *p, json_t *next, const json_t *answer, const char *button)
{
    const char *problem = recover_problem(answer, p->pages->config.six_digits);
    int64_t wait_s = page_retry_after(p);
    if (strcmp(problem, "bad_address") == 0)
        json_object_set_new(next, "step", json_string("address"));
    json_object_set_new(next, "error", json_string(problem));
    if (wait_s) {
        json_object_set_new(next, "wait", json_integer(now_s() + wait_s));
        json_object_set_new(next, "waits", json_string(button));
    }
    return keep_and_go(p, next);
}

static bool probed(struct page *p)
{
    const json_t *answer = page_answer(p);
    if (p->rq->reply.status != 200)
        return keep_problem(p, next_state(p, "address"), answer, "address");
    json_t *next = next_state(p, "found");
    json_object_set_new(next, "found", json_string(recover_found(json_object_get(answer, "data"))));
    return keep_and_go(p, next);
}

/* What has changed since the probe is a new finding, not a problem with the form. */
static const char *found_meanwhile(struct page *p, const json_t *answer)
{
    const char *problem = recover_problem(answer, p->pages->config.six_digits);
    if (!has_probe(p))
        return NULL; /* such a flow has no page for it */
    if (strcmp(problem, "not_registered") == 0)
        return "not_registered";
    return strcmp(problem, "complete") == 0 ? "kept" : NULL;
}

static bool code_asked(struct page *p)
{
    const json_t *answer = page_answer(p);
    if (p->rq->reply.status != 200) {
        const char *found = found_meanwhile(p, answer);
        json_t *next = next_state(p, found ? "found" : NULL);
        if (!found)
            return keep_problem(p, next, answer, "send");
        json_object_set_new(next, "found", json_string(found));
        return keep_and_go(p, next);
    }
    json_t *next = next_state(p, "code"), *expires = json_object_get(json_object_get(answer, "data"), "expiresAt");
    json_object_set_new(next, "sent", json_string(has_probe(p) ? "sent" : "perhaps"));
    json_object_set(next, "expires", expires);
    json_object_set_new(next, "resend", json_integer(now_s() + RESEND_S));
    json_object_del(next, "code");
    return keep_and_go(p, next);
}

static bool code_checked(struct page *p)
{
    const json_t *answer = page_answer(p);
    json_t *next = next_state(p, NULL), *typed = json_incref(json_object_get(next, "code"));
    json_object_del(next, "code");
    if (p->rq->reply.status != 200) {
        json_object_set_new(next, "typed", typed);
        return keep_problem(p, next, answer, "code");
    }
    json_decref(typed);
    json_object_set_new(next, "step", json_string("done"));
    return keep_and_go(p, next);
}

/* --- the page --- */

/* Microseconds since 1970 of the API's times, which are in UTC; 0 for what is none. */
static int64_t parse_time(const json_t *text)
{
    struct tm when = {0};
    const char *rest = json_is_string(text) ? strptime(json_string_value(text), "%Y-%m-%dT%H:%M:%S", &when) : NULL;
    return rest ? (int64_t)timegm(&when) * 1000000 : 0;
}

/* The code's life counts on the installation's clock, which may have been moved; waits count on the real one. */
static void set_times(struct page *p, const json_t *state)
{
    int64_t now_us = clock_wall_us(), expires_us = parse_time(json_object_get(state, "expires"));
    page_set_countdown(p, "life", expires_us, clock_installation_us());
    page_set(p, "life_over", json_boolean(expires_us && expires_us <= clock_installation_us()));
    page_set_countdown(p, "resend", json_integer_value(json_object_get(state, "resend")) * 1000000, now_us);
    page_set_countdown(p, "wait", json_integer_value(json_object_get(state, "wait")) * 1000000, now_us);
}

static bool is_one_of(const json_t *value, const char *const *words)
{
    const char *word = json_string_value(value);
    while (word && *words && strcmp(word, *words) != 0)
        words++;
    return word && *words;
}

static void set_choices(struct page *p, const json_t *state, bool has_field)
{
    static const char *const deletable[] = {"unverified", "verified", "unknown", NULL};
    static const char *const of_code[] = {"wrong", "wrong_digits", "bad_code", "bad_digits", "expired", NULL};
    page_set(p, "can_send", json_boolean(is_one_of(json_object_get(state, "found"), deletable)));
    page_set(p, "wrong_code", json_boolean(is_one_of(json_object_get(state, "error"), of_code)));
    page_set(p, "focus_problem", json_boolean(!has_field));
    page_set(p, "six_digits", json_boolean(p->pages->config.six_digits));
    page_set(p, "tried", json_boolean(json_object_get(state, "reference") != NULL));
}

static void show(struct page *p, const json_t *state)
{
    static const struct {
        const char *step, *template;
        enum text title;
    } all[] = {{"address", "recover-address", TEXT_RECOVER_ADDRESS_TITLE},
               {"found", "recover-found", TEXT_RECOVER_FOUND_TITLE},
               {"code", "recover-code", TEXT_RECOVER_CODE_TITLE},
               {"done", "recover-done", TEXT_RECOVER_DONE_TITLE}};
    static const char *const shown[] = {"email", "found", "sent", "typed", "error", "waits", "reference"};
    const char *step = json_string_value(json_object_get(state, "step"));
    size_t at = 0;
    for (size_t i = 0; step && i < COUNT_OF(all); i++)
        if (strcmp(step, all[i].step) == 0)
            at = i;
    for (size_t i = 0; i < COUNT_OF(shown); i++)
        if (json_object_get(state, shown[i]))
            page_set(p, shown[i], json_incref(json_object_get(state, shown[i])));
    set_choices(p, state, strcmp(all[at].step, "found") != 0);
    set_times(p, state);
    page_set_text(p, "step", str_of(all[at].step));
    page_set(p, "has_probe", json_boolean(has_probe(p)));
    page_show(p, all[at].template, all[at].title, 200);
}
