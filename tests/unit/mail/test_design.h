/* The built-in design of mails, for tests that compose some. Freed at the end of the program. */
#ifndef TEST_DESIGN_H
#define TEST_DESIGN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "mail/mail.h"

static struct sentences *design_sentences;
static struct mail_design *designs[2];

static void design_free(void)
{
    for (size_t i = 0; i < COUNT_OF(designs); i++)
        mail_design_free(designs[i]);
    sentences_free(design_sentences);
}

/* With links to https://example.com, or without any. */
static const struct mail_design *test_design(bool links)
{
    struct why why = {""};
    if (!design_sentences) {
        if (sentences_load(NULL, &design_sentences, &why))
            fail_msg("no sentences: %s", why.text);
        atexit(design_free);
    }
    const struct mail_design_config config = {.sentences = design_sentences,
                                              .brand_name = "Tom & <b>Uma</b>",
                                              .brand_color = "#2f5bea",
                                              .public_url = links ? "https://example.com/" : NULL};
    if (!designs[links] && mail_design_new(&config, &designs[links], &why))
        fail_msg("no design: %s", why.text);
    return designs[links];
}

#endif
