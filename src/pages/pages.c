#include "pages/pages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "pages/assets.h"
#include "pages/brand.h"
#include "pages/page.h"
#include "pages/routes.h"
#include "pages/templates.h"

#define LOGO_MAX ((size_t)256 * 1024)

static enum err add_colors(const struct pages_config *config, struct why *why);
static enum err add_logo(const struct pages_config *config, struct why *why);

enum err pages_new(const struct pages_config *config, struct pages **ret, struct why *why)
{
    struct pages *pages = calloc(1, sizeof *pages);
    if (!pages)
        return why_set(why, ERR_MEMORY, "out of memory");
    pages->config = *config;
    pages->https = config->public_url && strncmp(config->public_url, "https://", 8) == 0;
    struct str key = {(const char *)config->key->bytes, DIGEST_LEN};
    enum err e = digest_derive(key, "cookies of pages", &pages->seal_key);
    if (!e)
        e = digest_derive(key, "tokens of forms", &pages->token_key);
    if (!e)
        e = add_colors(config, why);
    if (!e && config->brand_logo)
        e = add_logo(config, why);
    if (!e)
        e = templates_load(pages, why);
    if (e)
        pages_free(pages);
    else
        *ret = pages;
    return e;
}

void pages_free(struct pages *pages)
{
    if (!pages)
        return;
    templates_free(pages);
    assets_free();
    docs_free();
    free(pages);
}

static enum err add_colors(const struct pages_config *config, struct why *why)
{
    bool adjusted;
    AUTO(buf) struct buf css = buf_new(4096);
    if (brand_write_css(str_of(config->brand_color), &css, &adjusted))
        return why_set(why, ERR_INPUT, "RECLAIM_BRAND_COLOR: %s is not a colour such as #2f5bea", config->brand_color);
    if (adjusted)
        log_warn("RECLAIM_BRAND_COLOR was made darker: white text on it would be hard to read",
                 F_STR("color", config->brand_color));
    AUTO(buf) struct buf icon = buf_new(4096);
    enum err e = brand_write_icon(str_of(config->brand_color), &icon);
    if (!e)
        e = asset_add("icon.svg", "image/svg+xml", buf_str(&icon), why);
    return e ? e : asset_add("brand.css", "text/css; charset=utf-8", buf_str(&css), why);
}

static enum err add_logo(const struct pages_config *config, struct why *why)
{
    const char *dot = strrchr(config->brand_logo, '.');
    bool svg = dot && strcmp(dot, ".svg") == 0;
    if (!svg && !(dot && strcmp(dot, ".png") == 0))
        return why_set(why, ERR_INPUT, "RECLAIM_BRAND_LOGO: %s is neither .svg nor .png", config->brand_logo);
    FILE *file = fopen(config->brand_logo, "re");
    if (!file)
        return why_set(why, ERR_INPUT, "RECLAIM_BRAND_LOGO: %s cannot be read", config->brand_logo);
    AUTO(buf) struct buf content = buf_new(LOGO_MAX);
    char part[4096];
    for (size_t got; (got = fread(part, 1, sizeof part, file)) > 0;)
        buf_add(&content, (struct str){part, got});
    fclose(file);
    if (!buf_str(&content).at)
        return why_set(why, ERR_INPUT, "RECLAIM_BRAND_LOGO: %s is empty or larger than 256 KiB", config->brand_logo);
    return asset_add(svg ? "logo.svg" : "logo.png", svg ? "image/svg+xml" : "image/png", buf_str(&content), why);
}

static const struct route assets_routes[] = {
    {.method = METHOD_GET, .path = "/assets/{file}", .handle = asset_handle},
    {0},
};

const struct route *pages_route(size_t at)
{
    static const struct route *const all[] = {assets_routes,           home_routes,          docs_routes,
                                              recover_routes,          account_routes,       certificate_routes,
                                              mailbox_routes,          admin_routes,         admin_overview_routes,
                                              admin_customers_routes,  admin_actions_routes, admin_tools_routes,
                                              admin_certificate_routes};
    for (size_t i = 0; i < COUNT_OF(all); i++)
        for (const struct route *r = all[i]; r->handle; r++)
            if (at-- == 0)
                return r;
    return NULL;
}

static bool wants_html(const struct request *rq)
{
    struct str accept = request_header(rq, "Accept"), range, kind;
    while (str_split(&accept, ',', &range))
        if (str_split(&range, ';', &kind) && str_eq_nocase(str_trim(kind), STR("text/html")))
            return true;
    return false;
}

void pages_refuse(struct request *rq, int status)
{
    refuse_by_status(rq, status);
    if (rq->forward || str_eq(rq->path, STR("/gate")) || str_starts(rq->path, STR("/gate/")) || !wants_html(rq))
        return;
    struct page *p = status == 404 || status == 405 || status == 413 ? page_new(rq) : NULL;
    if (p && status == 413)
        page_write(p, "too-large", TEXT_PAGE_TOO_LARGE_TITLE, status);
    else if (p && status == 405)
        page_write(p, "wrong-method", TEXT_PAGE_WRONG_METHOD_TITLE, status);
    else if (p)
        page_write(p, "not-found", TEXT_PAGE_NOT_FOUND_TITLE, status);
}
