/* Private to src/server: the pages, as the settings say. */
#ifndef SERVER_OPEN_PAGES_H
#define SERVER_OPEN_PAGES_H

#include "pages/pages.h"
#include "settings/keys.h"
#include "settings/settings.h"

/* *ret stays as it is when RECLAIM_PAGES is off. */
enum err open_pages(const struct settings *s, bool demo, const struct server_keys *keys,
                    const struct sentences *sentences, struct pages **ret, struct why *why) MUST_CHECK;

#endif
