/* Ends the calls of a customer that was frozen or deleted: a work item that runs until none is left, at the switch either. */
#ifndef CALLS_HANGUP_H
#define CALLS_HANGUP_H

#include "work/work.h"

/* The payload is {"customer_id":…} or {"customer_ids":[…]}; written in the transaction that freezes or deletes. */
#define HANGUP_KIND "hangup"
/* The same for calls at the switch of RECLAIM_SWITCH_RPC_URL, left by an instance without that setting. */
#define HANGUP_OWN_KIND "hangup_by_setting"
#define HANGUP_PAYLOAD_MAX 64

struct hangup;

/* `switch_url` is RECLAIM_SWITCH_RPC_URL, and must outlive it; NULL: calls at that switch are left to other instances. */
struct hangup *hangup_new(const char *switch_url) MUST_CHECK;
void hangup_free(struct hangup *hangup); /* after the engine; NULL is fine */
const struct work_kind *hangup_kind(struct hangup *hangup);
const struct work_kind *hangup_own_kind(struct hangup *hangup); /* NULL without `switch_url` */

/* A name only, for processes without an engine. */
extern const struct work_kind hangup_for_others;

#endif
