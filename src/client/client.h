/* HTTP and SMTP requests to other servers: any number at a time on one thread, with one libcurl multi handle.
 *
 * Allowed are https, smtps and smtp with STARTTLS; http and plain smtp only to this machine. Certificates are verified,
 * redirects are not followed, proxies of the environment are ignored. The size of replies and the time of each call are
 * bounded. Each call opens a new connection and is sent once: the caller decides about retries. */
#ifndef CLIENT_CLIENT_H
#define CLIENT_CLIENT_H

#include "base/buf.h"

#define CLIENT_BODY_MAX ((size_t)64 * 1024)

struct client;

struct client_config {
    const char *ca_file; /* NULL: the system's authorities */
    int connections_max; /* open at the same time; more calls wait, and the wait counts towards their time limit */
};

struct client_call { /* embedded in the caller's struct; not used by the client once `done` is called */
    const char *url;
    const char *const *headers;     /* "Name: value", NULL-terminated; NULL for none */
    const char *method;             /* NULL: POST with a body, otherwise GET */
    struct str body;                /* absent: none. For SMTP the message */
    size_t answer_max;              /* of HTTP's body; 0: CLIENT_BODY_MAX */
    const char *sender, *recipient; /* SMTP's envelope: addresses without names; NULL for HTTP */
    int64_t limit_ns;               /* time limit of the whole call, from client_send() */
    void (*done)(struct client_call *call);

    /* The members below are set when `done` is called. */
    /* OK: the reply is complete, with any status. ERR_TIMEOUT; ERR_CLOSED: no connection, no trusted certificate, or
     * the connection ended too early; ERR_FULL: the reply is longer than answer_max, its status and beginning are
     * set; ERR_INPUT: the URL is not allowed; ERR_MEMORY. */
    enum err err;
    int status;        /* HTTP's status, or SMTP's last reply code; 0 when there was none */
    struct str answer; /* HTTP's body; valid until `done` returns */

    /* Private to the client. */
    void *easy, *list;
    struct buf got;
    size_t sent;
    bool too_long, running;
    struct client_call *next, *previous;
};

/* Thread-safe, like client_wake() and client_check_url(). All other functions are called by one thread only. */
struct client *client_new(const struct client_config *config) MUST_CHECK;
void client_free(struct client *client); /* cancels running calls */

/* `done` is never called before this returns. */
void client_send(struct client *client, struct client_call *call);
/* Cancels a running call; `done` is not called. Does nothing when it is not running. */
void client_cancel(struct client *client, struct client_call *call);
/* Waits for network traffic, client_wake() or until_ns, then calls `done` of each completed call. */
void client_turn(struct client *client, int64_t until_ns);
void client_wake(struct client *client);

enum client_protocol { CLIENT_HTTP, CLIENT_SMTP };
/* ERR_INPUT when the URL is not allowed. */
enum err client_check_url(const char *url, enum client_protocol protocol) MUST_CHECK;

#endif
