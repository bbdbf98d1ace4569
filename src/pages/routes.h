/* Private to src/pages: the routes of each page; an entry without a handler ends a list. */
#ifndef PAGES_ROUTES_H
#define PAGES_ROUTES_H

#include "http/router.h"

extern const struct route docs_routes[];
void docs_free(void); /* what the reference keeps */
extern const struct route home_routes[], recover_routes[], account_routes[], certificate_routes[], mailbox_routes[];
extern const struct route admin_routes[], admin_overview_routes[], admin_customers_routes[], admin_actions_routes[],
    admin_tools_routes[], admin_certificate_routes[];

#endif
