/* What a page keeps in the browser: read again by the same page, until its time is over, and changed by nobody. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/unit.h"
#include "base/clock.h"
#include "pages/page.h"

/* Instead of the server's: the browser's cookies, the reply's one header, and what is freed at the end of a request. */
static char sent_name[64], sent_value[8192];
static const char *set_cookie;
static json_t *kept[16];
static size_t kept_count;

struct str request_cookie(const struct request *rq UNUSED, const char *name)
{
    return strcmp(name, sent_name) == 0 ? str_of(sent_value) : (struct str){NULL, 0};
}

bool request_at_end(struct request *rq UNUSED, void (*end)(void *context) UNUSED, void *context)
{
    kept[kept_count++] = context;
    return true;
}

void reply_header(struct request *rq UNUSED, const char *name, const char *value)
{
    assert_string_equal(name, "Set-Cookie");
    set_cookie = value;
}

static struct request rq;
static struct pages pages;
static struct page page = {.rq = &rq, .pages = &pages};

static int begin(void **state UNUSED)
{
    rq = (struct request){.arena = arena_new(4096, (size_t)1024 * 1024)};
    pages = (struct pages){.seal_key = digest_sha256(STR("a key"))};
    *sent_name = '\0';
    set_cookie = NULL;
    return rq.arena ? 0 : -1;
}

static int end(void **state UNUSED)
{
    while (kept_count)
        json_decref(kept[--kept_count]);
    arena_free(rq.arena);
    return 0;
}

/* The browser takes the cookie that the last reply set; false when it set none. */
static bool take_cookie(void)
{
    return set_cookie && sscanf(set_cookie, "%63[^=]=%8191[^;]", sent_name, sent_value) == 2;
}

static void keep(const char *name, const char *word, int64_t life_s)
{
    page_keep(&page, name, json_pack("{s:s}", "word", word), life_s);
}

static const char *word_of(const char *name)
{
    return json_string_value(json_object_get(page_state(&page, name), "word"));
}

static void what_was_kept_is_read_again(void **state UNUSED)
{
    keep("recover", "secret", 60);
    assert_non_null(strstr(set_cookie, "; Path=/; Max-Age=60; SameSite=Lax; HttpOnly"));
    assert_null(strstr(set_cookie, "Secure"));
    assert_true(take_cookie());
    assert_string_equal(sent_name, "reclaim_recover");
    assert_null(strstr(sent_value, "secret"));
    assert_string_equal(word_of("recover"), "secret");
}

static void on_https_it_belongs_to_this_host_alone(void **state UNUSED)
{
    pages.https = true;
    keep("recover", "secret", 60);
    assert_non_null(strstr(set_cookie, "; Secure"));
    assert_true(take_cookie());
    assert_string_equal(sent_name, "__Host-reclaim_recover");
    assert_string_equal(word_of("recover"), "secret");
}

static void it_ends_by_its_own_clock(void **state UNUSED)
{
    keep("recover", "secret", 60);
    assert_true(take_cookie());
    clock_shift(59 * NS_PER_S);
    assert_string_equal(word_of("recover"), "secret");
    clock_shift(3 * NS_PER_S);
    assert_null(page_state(&page, "recover"));
}

static void one_of_another_name_or_key_is_ignored(void **state UNUSED)
{
    keep("recover", "secret", 60);
    assert_true(take_cookie());
    snprintf(sent_name, sizeof sent_name, "reclaim_account");
    assert_null(page_state(&page, "account"));
    snprintf(sent_name, sizeof sent_name, "reclaim_recover");
    pages.seal_key = digest_sha256(STR("another key"));
    assert_null(page_state(&page, "recover"));
}

static void every_changed_character_is_noticed(void **state UNUSED)
{
    keep("recover", "secret", 60);
    assert_true(take_cookie());
    for (size_t i = 0; i + 1 < strlen(sent_value); i++) { /* the last one has spare bits */
        char before = sent_value[i];
        sent_value[i] = before == 'A' ? 'B' : 'A';
        assert_null(page_state(&page, "recover"));
        sent_value[i] = before;
    }
    assert_string_equal(word_of("recover"), "secret");
    memset(sent_value, 'A', sizeof sent_value - 1);
    assert_null(page_state(&page, "recover"));
    snprintf(sent_value, sizeof sent_value, "not base64!");
    assert_null(page_state(&page, "recover"));
}

static void too_much_is_not_kept(void **state UNUSED)
{
    static char word[4000];
    memset(word, 'x', sizeof word - 1);
    keep("recover", word, 60);
    assert_null(set_cookie);
    word[2000] = '\0';
    keep("recover", word, 60);
    assert_true(strlen(set_cookie) < 4096);
    assert_true(take_cookie());
    assert_string_equal(word_of("recover"), word);
}

static void forgetting_ends_it_in_the_browser(void **state UNUSED)
{
    page_forget(&page, "recover");
    assert_non_null(strstr(set_cookie, "reclaim_recover=; Path=/; Max-Age=0;"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_kept_is_read_again, begin, end),
        cmocka_unit_test_setup_teardown(on_https_it_belongs_to_this_host_alone, begin, end),
        cmocka_unit_test_setup_teardown(it_ends_by_its_own_clock, begin, end),
        cmocka_unit_test_setup_teardown(one_of_another_name_or_key_is_ignored, begin, end),
        cmocka_unit_test_setup_teardown(every_changed_character_is_noticed, begin, end),
        cmocka_unit_test_setup_teardown(too_much_is_not_kept, begin, end),
        cmocka_unit_test_setup_teardown(forgetting_ends_it_in_the_browser, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
