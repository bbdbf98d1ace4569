/* Private to src/http: one event loop, and its data for each connection and request. */
#ifndef HTTP_LOOP_H
#define HTTP_LOOP_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/wheel.h"
#include "http/server.h"

struct loop;
struct networks;

/* The server's data for a request, allocated in the request's arena. */
struct visit {
    struct request rq;
    struct loop *loop;
    struct MHD_Connection *connection;
    struct buf body;
    struct arena *work; /* see request_work */
    struct wheel_entry parked;
    int64_t ready_ns, release_ns, sent_ns;
    struct visit *next; /* in the loop's inbox */
    unsigned path_methods;
    enum { VISIT_READING, VISIT_WORKING, VISIT_REPLIED, VISIT_DUE } state;
    bool too_large, malformed;
};

/* A connection, and the deadline for its next complete request. */
struct peer {
    struct wheel_entry deadline;
    struct loop *loop;
    struct MHD_Connection *connection;
    struct peer *before, *behind; /* among those that keep the server waiting */
    struct ip ip;
    const char *target; /* of a request whose head is incomplete, in the library's memory; NULL: none */
    int fd;
    bool waits, counted, closing;
};

struct loop {
    struct server *server;
    struct MHD_Daemon *daemon;
    pthread_t thread;
    int epoll, wake;
    int listener; /* the daemon's; watched here only to make room */
    bool watches_listener;
    bool has_room; /* again, since the last turn: libmicrohttpd listens again only when it is called */
    struct peer *longest_waiting, *last_waiting;
    struct wheel parked, deadlines;
    pthread_mutex_t inbox_lock;
    struct visit *inbox; /* requests answered on other threads; newest first */
    int visits;          /* requests begun and not completed */
    bool quiet;          /* no longer listens */
    struct log_batch access_log;
    bool log_waits; /* for its reader */
    atomic_ullong answered;
    atomic_int connections, working, held;
    atomic_int closing; /* of the connections: shut down to make room */
};

struct server {
    struct server_config config;
    _Atomic(const struct http_policy *) policy;
    int listener;
    int connections_per_loop;
    struct networks *networks; /* NULL: no limit per network */
    char address[80];
    atomic_bool draining;
    atomic_bool warned_of_proxy, warned_of_key;
    _Atomic int64_t drain_until_ns;
    struct loop *loops;
};

/* Adds the wake-up descriptor and the daemon to its epoll set; the thread is started separately. */
enum err loop_open(struct loop *loop, struct server *server, struct why *why) MUST_CHECK;
void *loop_run(void *context); /* thread function; returns NULL when all requests were answered, otherwise the loop */
void loop_close(struct loop *loop);
void loop_wake(struct loop *loop);

/* Frees the memory of request_work(). */
void visit_work_done(struct visit *visit);

/* Whether this thread is inside the handler of this request. A handler may also answer other requests, for example
 * those that wait for a batch: they are suspended and must be resumed through the loop's inbox. */
bool visit_is_in_handler(const struct visit *visit);

/* Passes an answered request to its loop; from any thread. */
void loop_take_reply(struct visit *visit);

/* visit.c: libmicrohttpd's callbacks. */
void *visit_first_line(void *context, const char *uri, struct MHD_Connection *connection);
enum MHD_Result visit_handle(void *context, struct MHD_Connection *connection, const char *url, const char *method,
                             const char *version, const char *data, size_t *data_len, void **visit_context);
void visit_completed(void *context, struct MHD_Connection *connection, void **visit_context,
                     enum MHD_RequestTerminationCode how);

/* For requests that are refused without the library's help; libmicrohttpd's callbacks do the same for all others. */
struct visit *visit_new(struct loop *loop, struct MHD_Connection *connection, const char *url, const char *method);
void visit_identify(struct visit *visit); /* correlation id, form of errors, route */
void visit_count_answer(const struct request *rq);
void visit_end(struct visit *visit);
const struct router *visit_router(const struct request *rq);

/* peer.c */
enum MHD_Result peer_may_connect(void *context, const struct sockaddr *address, socklen_t len);
void peer_notify(void *context, struct MHD_Connection *connection, void **peer_context,
                 enum MHD_ConnectionNotificationCode what);
/* NULL when out of memory; peer_wait() and peer_work() then do nothing. */
struct peer *peer_of(struct MHD_Connection *connection);
/* The server waits for the client's bytes: from now on, for this long at most. */
void peer_wait(struct peer *peer, int64_t ns);
/* A complete request is being worked on, or its reply is held: no deadline, and the connection is not closed to make room. */
void peer_work(struct peer *peer);
/* The reply is being sent: the server waits for the client to take it. libmicrohttpd's inactivity time-out applies. */
void peer_send(struct peer *peer);
/* Shuts down connections without a complete request in time; libmicrohttpd notices and cleans up. */
void peers_close_late(struct loop *loop);
/* Makes the listening socket wake the loop while all connections are in use and one of this loop's could be closed. */
void peers_watch_listener(struct loop *loop);
/* A client waits to be accepted and all connections are in use: closes the one that kept this loop waiting longest. */
void peers_make_room(struct loop *loop);

#endif
