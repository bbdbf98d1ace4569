/* Requests to a telephone switch: query a call, cancel it, hang it up. Another kind of switch is one more file like
 * kamailio.c. */
#ifndef CALLS_SWITCH_H
#define CALLS_SWITCH_H

#include "client/client.h"

#define SWITCH_TAG_MAX 128

enum switch_command {
    SWITCH_QUERY,
    SWITCH_CANCEL,  /* a ringing call */
    SWITCH_HANG_UP, /* an answered call */
};

enum switch_result {
    SWITCH_ACCEPTED, /* it took the command; a query shows whether the call is over */
    SWITCH_GONE,     /* no such call, or no longer */
    SWITCH_RINGING,  /* set up, but not answered */
    SWITCH_ANSWERED, /* answered */
    SWITCH_FAILED,   /* it cannot be reached, or its answer makes no sense */
};

struct switch_request { /* a member of what waits for it */
    const char *call_id, *from_tag;
    char to_tag[SWITCH_TAG_MAX + 1]; /* "" while not known; a query sets it */
    int64_t cseq;                    /* of the INVITE; 0 while not known; a query sets it */
    enum switch_command command;
    void (*done)(struct switch_request *request); /* never before send() returns */
    enum switch_result result;

    /* Used by the switch: */
    struct client_call call;
    struct buf body;
};

struct phone_switch {
    const char *name; /* as recorded, for the log */
    const char *url;
    /* On the engine's thread, through its client. */
    void (*send)(const struct phone_switch *at, struct client *client, struct switch_request *request);
    /* Cancels a request under way; `done` is not called. Does nothing when none is. */
    void (*cancel)(struct client *client, struct switch_request *request);
};

/* Kamailio's JSON-RPC over HTTP; name and URL must outlive it. */
struct phone_switch kamailio(const char *name, const char *url);
/* Asks for its version and waits until the deadline; for `reclaim doctor`. */
enum err kamailio_version(const char *url, int64_t deadline_ns, char ret[128], struct why *why) MUST_CHECK;

#endif
