/* Ends the calls of a customer that was frozen or deleted: a work item that runs until none is left, at the switch either. */
#ifndef CALLS_HANGUP_H
#define CALLS_HANGUP_H

#include "work/work.h"

/* The payload is {"customer_id":…}; written in the transaction that freezes or deletes. */
#define HANGUP_KIND "hangup"
#define HANGUP_PAYLOAD_MAX 64

struct hangup;

/* `switch_url` is Kamailio's JSON-RPC, and must outlive it; NULL: calls end in the database only. */
struct hangup *hangup_new(const char *switch_url) MUST_CHECK;
void hangup_free(struct hangup *hangup); /* after the engine; NULL is fine */
const struct work_kind *hangup_kind(struct hangup *hangup);

/* A name only, for processes without an engine. */
extern const struct work_kind hangup_for_others;

#endif
