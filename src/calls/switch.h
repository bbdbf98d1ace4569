/* What Reclaim asks of a telephone switch: is this call still there, cancel it, hang it up. Another switch is one more
 * file like kamailio.c. */
#ifndef CALLS_SWITCH_H
#define CALLS_SWITCH_H

#include "client/client.h"

#define SWITCH_TAG_MAX 128

enum switch_wish {
    SWITCH_LOOK,
    SWITCH_CANCEL,  /* a call that rings */
    SWITCH_HANG_UP, /* a call that was answered */
};

enum switch_answer {
    SWITCH_TOLD,   /* it took the wish; whether the call is over, a look will tell */
    SWITCH_GONE,   /* no such call, or not any more */
    SWITCH_RINGS,  /* set up, but not answered */
    SWITCH_TALKS,  /* answered */
    SWITCH_FAILED, /* it cannot be reached, or what it says makes no sense */
};

struct switch_ask { /* a member of what asks */
    const char *call_id, *from_tag;
    char to_tag[SWITCH_TAG_MAX + 1]; /* "" while not known; a look fills it in */
    int64_t cseq;                    /* of the INVITE; 0 while not known; a look fills it in */
    enum switch_wish wish;
    void (*done)(struct switch_ask *ask); /* never before ask() returns */
    enum switch_answer answer;

    /* The switch's: */
    struct client_call call;
    struct buf body;
};

struct phone_switch {
    const char *name; /* for metrics and the log */
    const char *url;
    /* On the engine's thread, through its client. */
    void (*ask)(const struct phone_switch *at, struct client *client, struct switch_ask *ask);
    /* Forgets one under way; `done` is not called. Fine when it is not. */
    void (*forget)(struct client *client, struct switch_ask *ask);
};

/* Kamailio's JSON-RPC over HTTP; the URL must outlive it. */
struct phone_switch kamailio(const char *url);
/* Waits for its version, up to the instant; for `reclaim doctor`. `why` says what is wrong. */
enum err kamailio_version(const char *url, int64_t deadline_ns, char ret[128], struct why *why) MUST_CHECK;

#endif
