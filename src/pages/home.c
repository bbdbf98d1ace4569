/* `/`: what this server does, and where to go. */
#include "pages/page.h"
#include "pages/routes.h"

static void home_handle(struct request *rq)
{
    struct page *p = page_begin(rq);
    if (p)
        page_show(p, "home", TEXT_HOME_TITLE, 200);
}

const struct route home_routes[] = {
    {.method = METHOD_GET, .path = "/", .handle = home_handle},
    {0},
};
