/* Sentences, and the operator's in their place. */
#include "text/sentences.h"

#include <string.h>

#include "../settings/room.h"

static struct sentences *load(const char *ini)
{
    struct sentences *s = NULL;
    struct why why = {""};
    if (ini)
        write_file("en.ini", ini, 0600);
    if (sentences_load(room, &s, &why))
        fail_msg("%s", why.text);
    return s;
}

static void assert_refused(const char *ini, const char *words)
{
    struct sentences *s = NULL;
    struct why why = {""};
    write_file("en.ini", ini, 0600);
    assert_int_equal(sentences_load(room, &s, &why), ERR_INPUT);
    assert_null(s);
    if (!strstr(why.text, words))
        fail_msg("%s", why.text);
}

static void an_operator_replaces_one_sentence_of_one_language(void **state UNUSED)
{
    struct sentences *s = load("[a]\nplain = Welcome {name}, welcome\n");
    assert_str(sentence(s, LANGUAGE_EN, TEXT_A_PLAIN), "Welcome {name}, welcome");
    assert_str(sentence(s, LANGUAGE_DE, TEXT_A_PLAIN), "Hallo {name} & andere");
    assert_str(sentence(s, LANGUAGE_EN, TEXT_A_TRIES_ONE), "One try left");
    sentences_free(s);
}

static void an_operators_sentence_may_be_long(void **state UNUSED)
{
    char ini[2100], text[2001];
    memset(text, 'x', 2000);
    text[2000] = '\0';
    snprintf(ini, sizeof ini, "[a]\nplain = %s", text);
    struct sentences *s = load(ini);
    assert_str(sentence(s, LANGUAGE_EN, TEXT_A_PLAIN), text);
    sentences_free(s);
}

static void a_file_may_have_comments_a_byte_order_mark_and_lines_of_windows(void **state UNUSED)
{
    struct sentences *s = load("\xef\xbb\xbf; sentences\r\n\r\n[a]\r\n# one\r\n  plain=1 = 2; {name}\r\ntries.one =");
    assert_str(sentence(s, LANGUAGE_EN, TEXT_A_PLAIN), "1 = 2; {name}");
    assert_str(sentence(s, LANGUAGE_EN, TEXT_A_TRIES_ONE), "");
    sentences_free(s);
    s = load("");
    assert_str(sentence(s, LANGUAGE_EN, TEXT_A_TRIES_ONE), "One try left");
    sentences_free(s);
}

static void a_folder_without_files_changes_nothing(void **state UNUSED)
{
    struct sentences *s = load(NULL);
    assert_str(sentence(s, LANGUAGE_EN, TEXT_A_PLAIN), "Hello {name} & others");
    sentences_free(s);
}

static void a_mistake_names_the_file_and_the_key(void **state UNUSED)
{
    assert_refused("[a]\nplane = Hello\n", "en.ini: there is no sentence called a.plane");
    assert_refused("[a]\nplain = Hello {nam}\n", "a.plain cannot contain {nam}");
    assert_refused("[a]\nplain\n", "line 2");
    assert_refused("[a]\n\n; \xff is skipped\nplain = \xff\n", "line 4 is not UTF-8");
    assert_refused("plain = Hello\n", "there is no sentence called .plain");
}

static void sentences_are_found_by_their_names(void **state UNUSED)
{
    enum text id;
    assert_int_equal(sentence_find(STR("a.tries.other"), &id), OK);
    assert_int_equal(id, TEXT_A_TRIES_OTHER);
    static const char *const wrong[] = {"", "a", "a.", "a.tries", "A.PLAIN", "a.plain "};
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_int_equal(sentence_find(str_of(wrong[i]), &id), ERR_MISSING);
    char name[300];
    memset(name, 'a', sizeof name);
    assert_int_equal(sentence_find((struct str){name, sizeof name}, &id), ERR_MISSING);
}

static bool only_name(struct buf *out, struct str name, void *context UNUSED)
{
    if (!str_eq(name, STR("name")))
        return false;
    buf_addz(out, "{x}");
    return true;
}

static void a_placeholder_is_filled_once_and_an_unknown_one_stays(void **state UNUSED)
{
    static const char *const cases[][2] = {{"{name}{name}", "{x}{x}"},
                                           {"{other} {name}", "{other} {x}"},
                                           {"{name", "{name"},
                                           {"a}b{", "a}b{"},
                                           {"{}", "{}"},
                                           {"plain", "plain"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        AUTO(buf) struct buf out = buf_new(100);
        sentence_fill(&out, str_of(cases[i][0]), only_name, NULL);
        assert_str(buf_str(&out), cases[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_ROOM(an_operator_replaces_one_sentence_of_one_language),
        IN_ROOM(an_operators_sentence_may_be_long),
        IN_ROOM(a_file_may_have_comments_a_byte_order_mark_and_lines_of_windows),
        IN_ROOM(a_folder_without_files_changes_nothing),
        IN_ROOM(a_mistake_names_the_file_and_the_key),
        cmocka_unit_test(sentences_are_found_by_their_names),
        cmocka_unit_test(a_placeholder_is_filled_once_and_an_unknown_one_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
