#include "mail/design.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "text/template_files.h"

#define TEXTS_MAX ((size_t)4 * 1024 * 1024)

static const char *const layouts[MAIL_LAYOUTS] = {"mail/code", "mail/notice"};

static enum err copy_texts(struct mail_design *design, const struct mail_design_config *config, struct why *why)
{
    if (brand_colors(str_of(config->brand_color), &design->colors))
        return why_set(why, ERR_INPUT, "RECLAIM_BRAND_COLOR: %s is not a colour such as #2f5bea", config->brand_color);
    design->brand_name = strdup(config->brand_name);
    design->public_url = config->public_url ? strdup(config->public_url) : NULL;
    if (!design->brand_name || (config->public_url && !design->public_url))
        return why_set(why, ERR_MEMORY, "no memory for the mails' design");
    size_t len = design->public_url ? strlen(design->public_url) : 0;
    while (len && design->public_url[len - 1] == '/')
        design->public_url[--len] = 0;
    return OK;
}

static enum err load_templates(struct mail_design *design, const char *folder, struct why *why)
{
    if (!(design->texts = arena_new(1024, TEXTS_MAX)))
        return why_set(why, ERR_MEMORY, "no memory for the mails' design");
    struct template_files files = {folder, design->texts};
    const struct template_source source = template_files_source(&files);
    enum err e = OK;
    for (size_t i = 0; i < MAIL_LAYOUTS && !e; i++)
        e = template_parse(layouts[i], &source, &design->layouts[i], why);
    return e;
}

enum err mail_design_new(const struct mail_design_config *config, struct mail_design **ret, struct why *why)
{
    struct mail_design *design = calloc(1, sizeof *design);
    if (!design)
        return why_set(why, ERR_MEMORY, "no memory for the mails' design");
    design->sentences = config->sentences;
    design->language = config->language;
    enum err e = copy_texts(design, config, why);
    if (!e)
        e = load_templates(design, config->texts_folder, why);
    if (e)
        mail_design_free(design);
    else
        *ret = design;
    return e;
}

enum err mail_design_link_to(struct mail_design *design, const char *address)
{
    char url[128];
    free(design->public_url);
    snprintf(url, sizeof url, "http://%s", address);
    return (design->public_url = strdup(url)) ? OK : ERR_MEMORY;
}

void mail_design_free(struct mail_design *design)
{
    if (!design)
        return;
    for (size_t i = 0; i < MAIL_LAYOUTS; i++)
        template_free(design->layouts[i]);
    arena_free(design->texts);
    free(design->brand_name);
    free(design->public_url);
    free(design);
}

const struct template *mail_design_template(const struct mail_design *design, const char *name)
{
    for (size_t i = 0; i < MAIL_LAYOUTS; i++)
        if (strcmp(layouts[i] + sizeof "mail/" - 1, name) == 0)
            return design->layouts[i];
    return design->layouts[MAIL_LAYOUTS - 1];
}

enum language mail_language(const struct mail_design *design, struct str tag)
{
    enum language language;
    return tag.at && !language_parse(tag, &language) ? language : design->language;
}

json_t *mail_date(const struct mail_design *design, enum language language, struct str rfc3339)
{
    const struct reader reader = {.sentences = design->sentences, .language = language};
    AUTO(buf) struct buf text = buf_new(256);
    text_fill_time(&reader, rfc3339, &text);
    return json_string(text.len ? text.at : "");
}
