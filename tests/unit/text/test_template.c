/* Templates: values are escaped, blocks and partials work, and a mistake is found when they are parsed. */
#include "text/template.h"

#include <stdio.h>
#include <string.h>

#include "../base/unit.h"

static struct sentences *sentences;

static int load(void **state UNUSED)
{
    struct why why;
    return sentences_load(NULL, &sentences, &why) ? -1 : 0;
}

static int unload(void **state UNUSED)
{
    sentences_free(sentences);
    return 0;
}

static struct str find(const char *name, void *context)
{
    if (strcmp(name, "main") == 0)
        return str_of(context);
    if (strcmp(name, "part") == 0)
        return STR("[{{name}}]");
    if (strcmp(name, "loop") == 0)
        return STR("{{>loop}}");
    return strcmp(name, "broken") == 0 ? STR("\n{{#if a}}") : (struct str){NULL, 0};
}

static const char *asset(const char *name)
{
    return strcmp(name, "base.css") == 0 ? "/assets/base-1.css" : NULL;
}

static void assert_filled_in(enum language language, const char *text, const char *json, const char *expected)
{
    const struct template_source source = {find, (void *)(uintptr_t)text};
    const struct reader reader = {sentences, language, asset};
    struct template *t = NULL;
    struct why why = {""};
    AUTO(buf) struct buf out = buf_new(65536);
    AUTO(json) json_t *values = json_loads(json, 0, NULL);
    assert_non_null(values);
    if (template_parse("main", &source, &t, &why))
        fail_msg("%s", why.text);
    template_fill(t, &reader, values, &out);
    template_free(t);
    buf_addz(&out, "|"); /* a buffer that stayed empty has no text */
    char wanted[1000];
    snprintf(wanted, sizeof wanted, "%s|", expected);
    assert_string_equal(buf_str(&out).at, wanted);
}

static void assert_filled(const char *text, const char *json, const char *expected)
{
    assert_filled_in(LANGUAGE_EN, text, json, expected);
}

static void values_are_escaped(void **state UNUSED)
{
    assert_filled("<p title=\"{{v}}\">{{ v }}</p>", "{\"v\":\"<b>&\\\"'\"}",
                  "<p title=\"&lt;b&gt;&amp;&quot;'\">&lt;b&gt;&amp;&quot;'</p>");
    assert_filled("{{raw v}}", "{\"v\":\"<svg/>\"}", "<svg/>");
    assert_filled("{{v}}", "{\"v\":\"{{name}} {name}\",\"name\":\"x\"}", "{{name}} {name}");
    assert_filled("/x?q={{query v}}", "{\"v\":\"a b&c\"}", "/x?q=a%20b%26c");
    assert_filled("{{mask v}}", "{\"v\":\"viktor@example.com\"}", "vi•••@example.com");
}

static void values_of_every_kind_have_a_text(void **state UNUSED)
{
    assert_filled("{{a}} {{b}} {{c}} {{d}} {{e}} {{f}} {{g}}",
                  "{\"a\":1204,\"b\":1.5,\"c\":true,\"d\":false,\"e\":null,\"f\":[1],\"g\":{\"x\":1}}",
                  "1204 1.5 true false   ");
    assert_filled("{{number a}} {{number b}}", "{\"a\":1204,\"b\":\"<x>\"}", "1,204 &lt;x&gt;");
    assert_filled("{{a.b.c}}{{a.x.c}}{{a.b.c.d}}", "{\"a\":{\"b\":{\"c\":\"deep\"}}}", "deep");
    assert_filled("{{time a}}{{date b}}", "{\"b\":\"2026-12-15T14:32:07Z\"}",
                  "<time datetime=\"2026-12-15T14:32:07Z\" data-date>15 December 2026</time>");
}

static void conditions_choose_a_part(void **state UNUSED)
{
    static const char *const yes[] = {"true", "1", "-1", "\"x\"", "[0]", "{\"a\":null}", "0.5"};
    static const char *const no[] = {"false", "null", "0", "\"\"", "[]", "{}"};
    char json[100];
    for (size_t i = 0; i < COUNT_OF(yes); i++) {
        snprintf(json, sizeof json, "{\"v\":%s}", yes[i]);
        assert_filled("{{#if v}}yes{{#else}}no{{/if}}", json, "yes");
    }
    for (size_t i = 0; i < COUNT_OF(no); i++) {
        snprintf(json, sizeof json, "{\"v\":%s}", no[i]);
        assert_filled("{{#if v}}yes{{#else}}no{{/if}}", json, "no");
    }
    assert_filled("{{#if v}}yes{{/if}}{{#if w.x}}yes{{#else}}no{{/if}}", "{}", "no");
    assert_filled("{{#is v a}}A{{#else}}{{#is v b}}B{{#else}}?{{/is}}{{/is}}", "{\"v\":\"b\"}", "B");
    assert_filled("{{#is v 3}}three{{/is}}{{#is w true}}true{{/is}}{{#is x null}}null{{/is}}",
                  "{\"v\":3,\"w\":true,\"x\":null}", "threetrue");
    assert_filled("{{#if a}}{{#if b}}both{{#else}}a{{/if}}{{#else}}none{{/if}}", "{\"a\":1}", "a");
}

static void a_list_is_repeated_with_its_items_in_front(void **state UNUSED)
{
    assert_filled("{{#each items}}{{name}}{{sign}}{{#else}}none{{/each}}",
                  "{\"sign\":\";\",\"name\":\"outer\",\"items\":[{\"name\":\"a\"},{\"name\":\"b\",\"sign\":\"!\"},{}]}",
                  "a;b!outer;");
    assert_filled("{{#each items}}{{name}}{{#else}}none{{/each}}", "{\"items\":[]}", "none");
    assert_filled("{{#each items}}{{name}}{{#else}}none{{/each}}", "{\"items\":\"text\"}", "");
    assert_filled("{{#each items}}<{{.}}>{{/each}}", "{\"items\":[\"&\",2]}", "<&amp;><2>");
    assert_filled("{{#each rows}}{{#each .}}{{.}}{{/each}};{{/each}}", "{\"rows\":[[1,2],[3]]}", "12;3;");
}

static void sentences_are_filled_in_the_readers_language(void **state UNUSED)
{
    assert_filled("{{t a.plain}}", "{\"name\":\"<i>\"}", "Hello &lt;i&gt; &amp; others");
    assert_filled_in(LANGUAGE_DE, "{{t a.plain}}", "{\"name\":\"Ada\"}", "Hallo Ada &amp; andere");
    assert_filled("{{t a.plain}}", "{}", "Hello {name} &amp; others");
    assert_filled("{{t a.bold}}", "{\"name\":\"**x** {tries}\",\"tries\":1}",
                  "This is <strong>very **x** {tries}</strong>");
    assert_filled("{{t a.masked}}", "{\"email\":\"viktor@example.com\"}", "To <strong>vi•••@example.com</strong>");
    assert_filled("{{t a.masked}}", "{\"email\":\"<b>x@example.com\"}", "To <strong>&lt;b•••@example.com</strong>");
}

static void a_sentence_has_two_forms_by_number(void **state UNUSED)
{
    assert_filled("{{t a.tries tries}}", "{\"tries\":1}", "One try left");
    assert_filled("{{t a.tries tries}}", "{\"tries\":0}", "0 tries left");
    assert_filled("{{t a.tries tries}}", "{\"tries\":1200}", "1,200 tries left");
    assert_filled_in(LANGUAGE_DE, "{{t a.tries tries}}", "{\"tries\":1200}", "Noch 1.200 Versuche");
    assert_filled("{{t a.tries list}}", "{\"list\":[7],\"tries\":5}", "One try left");
}

static void a_word_is_chosen_by_a_value(void **state UNUSED)
{
    assert_filled("{{word a.kind v}}", "{\"v\":\"x\"}", "Kind X");
    assert_filled("{{word a.kind v}}", "{\"v\":\"unheard of\"}", "Another kind");
    assert_filled("{{word a.kind v}}", "{}", "Another kind");
    char json[400];
    snprintf(json, sizeof json, "{\"v\":\"%0300d\"}", 0);
    assert_filled("{{word a.kind v}}", json, "Another kind");
}

static void partials_and_assets_are_put_in_place(void **state UNUSED)
{
    assert_filled("a{{>part}}b{{> part }}", "{\"name\":\"<\"}", "a[&lt;]b[&lt;]");
    assert_filled("{{asset base.css}} {{asset none.css}}", "{}", "/assets/base-1.css ");
    assert_filled("{ {} } }} {", "{}", "{ {} } }} {");
    assert_filled("", "{}", "");
}

static void a_mistake_is_found_with_its_place(void **state UNUSED)
{
    static const char *const cases[][2] = {
        {"a\nb{{", "template main, line 2: a tag is not closed"},
        {"{{}}", "main, line 1"},
        {"{{#if}}", "unknown tag"},
        {"{{#unless a}}{{/unless}}", "unknown tag"},
        {"{{/if}}", "unknown tag"},
        {"{{#else}}", "unknown tag"},
        {"{{#if a}}{{/each}}", "unknown tag `/each`"},
        {"{{#if a}}", "the end is missing: `/if`"},
        {"{{#if a}}{{#else}}{{#else}}{{/if}}", "unknown tag `#else`"},
        {"{{#is a}}{{/is}}", "two words are needed after `#is`"},
        {"{{word a.kind}}", "two words are needed after `word`"},
        {"{{t a.nothing}}", "there is no sentence `a.nothing`"},
        {"{{t a.tries}}", "there is no sentence `a.tries`"},
        {"{{two words}}", "unknown tag `two words`"},
        {"{{>nothing}}", "there is no template `nothing`"},
        {"{{>loop}}", "there is no template `loop`"},
        {"{{>broken}}", "template broken, line 2: the end is missing"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct template_source source = {find, (void *)(uintptr_t)cases[i][0]};
        struct template *t = NULL;
        struct why why = {""};
        assert_int_equal(template_parse("main", &source, &t, &why), ERR_INPUT);
        assert_null(t);
        if (!strstr(why.text, cases[i][1]))
            fail_msg("%s: %s", cases[i][0], why.text);
    }
}

static void a_plain_sentence_has_no_marks_and_no_escapes(void **state UNUSED)
{
    const struct reader reader = {sentences, LANGUAGE_EN, NULL};
    AUTO(json) json_t *values = json_pack("{s:s}", "name", "<i>");
    AUTO(buf) struct buf plain = buf_new(1000);
    AUTO(buf) struct buf html = buf_new(1000);
    text_fill_sentence(&reader, TEXT_A_BOLD, values, &plain);
    template_fill_sentence(&reader, TEXT_A_BOLD, values, &html);
    assert_str(buf_str(&plain), "This is very <i>");
    assert_str(buf_str(&html), "This is <strong>very &lt;i&gt;</strong>");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_escaped),
        cmocka_unit_test(values_of_every_kind_have_a_text),
        cmocka_unit_test(conditions_choose_a_part),
        cmocka_unit_test(a_list_is_repeated_with_its_items_in_front),
        cmocka_unit_test(sentences_are_filled_in_the_readers_language),
        cmocka_unit_test(a_sentence_has_two_forms_by_number),
        cmocka_unit_test(a_word_is_chosen_by_a_value),
        cmocka_unit_test(partials_and_assets_are_put_in_place),
        cmocka_unit_test(a_mistake_is_found_with_its_place),
        cmocka_unit_test(a_plain_sentence_has_no_marks_and_no_escapes),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
