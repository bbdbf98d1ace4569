/* `/docs`: the reference of the API, made at build from openapi.json (tools/docs.py). */
#include "pages/page.h"
#include "pages/routes.h"

static void docs_handle(struct request *rq)
{
    struct page *p = page_begin(rq);
    if (p)
        page_show(p, "docs", TEXT_DOCS_TITLE, 200);
}

const struct route docs_routes[] = {
    {.method = METHOD_GET, .path = "/docs", .handle = docs_handle},
    {0},
};
