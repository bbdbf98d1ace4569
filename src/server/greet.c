#include "server/greet.h"

#include <stdio.h>

static const char *const pages[][2] = {{"Start here", "/"},
                                       {"Register again", "/recover"},
                                       {"Account", "/account"},
                                       {"Console", "/admin"},
                                       {"API", "/docs"}};

void greet(const struct settings *s, const char *public, const char *ops, const char *database)
{
    printf("Reclaim is listening.\n");
    for (size_t i = 0; s->pages && i < COUNT_OF(pages); i++)
        printf("  %-14s http://%s%s\n", pages[i][0], public, pages[i][1]);
    if (settings_shows_mailbox(s, true))
        printf("  Mailbox        http://%s/mailbox%s\n", public, s->pages ? "" : ".json");
    else if (settings_has_mailbox(s, true))
        printf("  Mailbox        not shown: others reach RECLAIM_LISTEN (%s); table reclaim.mailbox has the mails\n",
               s->listen);
    printf("  Description    http://%s/openapi.json\n"
           "  Health         http://%s/readyz\n"
           "  Metrics        http://%s/metrics\n"
           "  Database       psql '%s'\n",
           public, ops, ops, database);
    printf("Or without a browser:\n"
           "  curl -s http://%s/functions/v1/check-email-status -d '{\"email\":\"viktor@example.com\"}'\n"
           "  curl -s http://%s/auth/login -d '{\"email\":\"ada@example.com\",\"password\":\"demo-password\"}'\n"
           "Stop with ctrl-C.\n",
           public, public);
    fflush(stdout);
}
