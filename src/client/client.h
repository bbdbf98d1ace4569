/* Requests to other servers, any number at a time on one thread: HTTP and SMTP through one libcurl multi handle.
 *
 * Only https is spoken, or http with a server on this very machine; smtps, or smtp that changes to TLS, or plain smtp
 * with this machine. Certificates are verified, redirects are not followed, proxies of the environment are ignored.
 * Answers are bounded, and so is the time each call takes. Each has
 * a connection of its own and is sent once, so that trying again is the caller's decision. */
#ifndef CLIENT_CLIENT_H
#define CLIENT_CLIENT_H

#include "base/buf.h"

#define CLIENT_BODY_MAX ((size_t)64 * 1024)

struct client;

struct client_config {
    const char *ca_file; /* NULL: the system's authorities */
    int connections_max; /* at once; more calls wait, and their time runs */
};

struct client_call { /* a member of what asks; the caller's again once `done` is called */
    const char *url;
    const char *const *headers;     /* "Name: value", NULL behind the last; NULL for none */
    struct str body;                /* POSTed; absent: GET. The message itself for SMTP */
    const char *sender, *recipient; /* SMTP's envelope, addresses alone; NULL for HTTP */
    int64_t patience_ns;            /* for all of it, from client_send on */
    void (*done)(struct client_call *call);

    /* Filled when done: */
    /* OK: the whole answer is there, whatever its status. ERR_TIMEOUT; ERR_CLOSED: no connection, no trusted
     * certificate, or the connection ended too soon; ERR_FULL: the answer is longer than CLIENT_BODY_MAX, and status
     * and the beginning are there; ERR_INPUT: the URL may not be asked; ERR_MEMORY. */
    enum err err;
    int status;        /* HTTP's, or the last reply code of SMTP; 0 when there was none */
    struct str answer; /* of HTTP; only until `done` returns */

    /* The client's: */
    void *easy, *list;
    struct buf got;
    size_t sent;
    bool too_long, under_way;
    struct client_call *next, *previous;
};

/* Thread-safe, and so are client_wake and client_check_url. Everything else belongs to the one thread that turns it. */
struct client *client_new(const struct client_config *config) MUST_CHECK;
void client_free(struct client *client); /* calls under way are cancelled */

/* Never calls `done` before it returns. */
void client_send(struct client *client, struct client_call *call);
/* Forgets a call under way; `done` is not called. Fine when it is not under way. */
void client_cancel(struct client *client, struct client_call *call);
/* Waits for traffic, a wake-up or the instant, and then calls what is done. */
void client_turn(struct client *client, int64_t until_ns);
void client_wake(struct client *client);

enum client_protocol { CLIENT_HTTP, CLIENT_SMTP };
/* Whether a URL may be asked at all: ERR_INPUT. */
enum err client_check_url(const char *url, enum client_protocol protocol) MUST_CHECK;

#endif
