/* The switches of this installation, recorded in reclaim.switches. */
#ifndef CALLS_SWITCHES_H
#define CALLS_SWITCHES_H

#include "pg/pg.h"

/* The switch of RECLAIM_SWITCH_RPC_URL. Its URL stays in the setting: it may name this machine, or have a password in it. */
#define SWITCH_OF_SETTING "default"
#define SWITCH_URL_MAX 2048

bool switch_name_is_sound(struct str name);
/* Whether the URL has a user, a password or a query, which must not be stored. */
bool switch_url_has_secrets(const char *url);
/* The URL without them, for people. */
void switch_address(const char *url, char ret[SWITCH_URL_MAX + 1]);

/* At the server's start, when RECLAIM_SWITCH_RPC_URL is set. */
enum err switches_record_setting(struct pg *pg, const char *url, int64_t deadline_ns, struct why *why) MUST_CHECK;

extern const struct statement switch_record; /* $1 address */
extern const struct statement switch_add;    /* $1 name, $2 URL → whether it is new; how many there are */
extern const struct statement switch_remove; /* $1 name, $2 even with live calls → as reclaim.switch_remove */
extern const struct statement switches_list;
extern const struct statement switch_lacking; /* whether calls have dialogs and no switch is recorded */

#endif
