/* Sentences and templates of the operator's folder take the place of those built in. */
#include "text/sentences.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/unit.h"
#include "base/defs.h"
#include "text/colors.h"
#include "text/template_files.h"

static char folder[] = "/tmp/reclaim-texts-XXXXXX";

static void write_file(const char *name, const char *content)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(content, file);
    fclose(file);
}

static enum err load(const char *ini, struct sentences **ret, struct why *why)
{
    write_file("en.ini", ini);
    return sentences_load(folder, ret, why);
}

static void a_sentence_of_any_length_is_read_whole(void **state UNUSED)
{
    struct sentences *s = NULL;
    struct why why = {""};
    char ini[4096];
    AUTO(buf) struct buf wanted = buf_new(2048);
    for (int i = 0; i < 40; i++)
        buf_addz(&wanted, "A long sentence; with a semicolon. ");
    buf_addz(&wanted, "End");
    snprintf(ini, sizeof ini, "[mail]\nrecovery_warning = %s\n", wanted.at);
    if (load(ini, &s, &why))
        fail_msg("%s", why.text);
    assert_str(sentence(s, LANGUAGE_EN, TEXT_MAIL_RECOVERY_WARNING), wanted.at);
    assert_str(sentence(s, LANGUAGE_DE, TEXT_MAIL_RECOVERED_SUBJECT), "Ihr Konto ist wieder aktiv");
    sentences_free(s);
}

static void a_mistake_is_named_with_its_file(void **state UNUSED)
{
    static const struct {
        const char *ini, *why;
    } wrong[] = {
        {"[mail]\nno_such_key = x\n", "/en.ini: there is no sentence called mail.no_such_key"},
        {"[mail]\nfrozen_until = Until {then}.\n", "/en.ini: mail.frozen_until cannot contain {then}"},
        {"[mail]\njust words\n", "/en.ini: line 2 is not `key = sentence`"},
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct sentences *s = NULL;
        struct why why = {""};
        assert_int_equal(load(wrong[i].ini, &s, &why), ERR_INPUT);
        assert_non_null(strstr(why.text, wrong[i].why));
    }
}

static void a_template_of_the_folder_comes_first(void **state UNUSED)
{
    struct arena *arena = arena_new(1024, 1 << 20);
    struct template_files files = {folder, arena};
    const struct template_source source = template_files_source(&files);
    char path[200];
    snprintf(path, sizeof path, "%s/templates", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/templates/mail", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    write_file("templates/mail/code.html", "ours");
    assert_str(source.find("mail/code", source.context), "ours");
    assert_non_null(strstr(source.find("mail/notice", source.context).at, "paragraphs"));
    assert_absent(source.find("mail/none", source.context));
    arena_free(arena);
}

static void the_best_language_of_the_reader_is_found(void **state UNUSED)
{
    enum language language = LANGUAGE_EN;
    assert_int_equal(language_asked(STR("fr, de-CH;q=0.8, en;q=0.5"), &language), OK);
    assert_int_equal(language, LANGUAGE_DE);
    assert_int_equal(language_asked(STR("*"), &language), ERR_MISSING);
    assert_int_equal(language_asked(STR("fr"), &language), ERR_MISSING);
    assert_int_equal(language_asked(str_of(NULL), &language), ERR_MISSING);
    assert_int_equal(language_choose(STR("fr"), LANGUAGE_DE), LANGUAGE_DE);
}

static void a_colour_is_changed_until_it_can_be_read(void **state UNUSED)
{
    struct brand_colors c;
    assert_int_equal(brand_colors(STR("#2f5bea"), &c), OK);
    assert_string_equal(c.accent, "#2f5bea");
    assert_string_equal(c.on_accent, "#ffffff");
    assert_false(c.adjusted);
    assert_int_equal(brand_colors(STR("#ffd400"), &c), OK);
    assert_string_equal(c.on_accent, "#11141c");
    assert_string_not_equal(c.link_light, "#ffd400");
    assert_int_equal(brand_colors(STR("blue"), &c), ERR_INPUT);
}

static int make_folder(void **state UNUSED)
{
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state UNUSED)
{
    static const char *const made[] = {"/templates/mail/code.html", "/templates/mail", "/templates", "/en.ini", ""};
    for (size_t i = 0; i < COUNT_OF(made); i++) {
        char path[200];
        snprintf(path, sizeof path, "%s%s", folder, made[i]);
        remove(path);
    }
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sentence_of_any_length_is_read_whole),
        cmocka_unit_test(a_mistake_is_named_with_its_file),
        cmocka_unit_test(a_template_of_the_folder_comes_first),
        cmocka_unit_test(the_best_language_of_the_reader_is_found),
        cmocka_unit_test(a_colour_is_changed_until_it_can_be_read),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
