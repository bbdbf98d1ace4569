/* Private to src/http: one event loop, and its data for each connection and request. */
#ifndef HTTP_LOOP_H
#define HTTP_LOOP_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "base/wheel.h"
#include "http/server.h"

struct loop;

/* The server's data for a request, allocated in the request's arena. */
struct visit {
    struct request rq;
    struct loop *loop;
    struct MHD_Connection *connection;
    struct buf body;
    struct arena *work; /* see request_work */
    struct wheel_entry parked;
    int64_t release_ns;
    struct visit *next; /* in the loop's inbox */
    unsigned path_methods;
    enum { VISIT_READING, VISIT_WORKING, VISIT_REPLIED, VISIT_DUE } state;
    bool too_large, malformed;
};

/* A connection, and the deadline for its next complete request. */
struct peer {
    struct wheel_entry deadline;
    struct loop *loop;
    int fd;
};

struct loop {
    struct server *server;
    struct MHD_Daemon *daemon;
    pthread_t thread;
    int epoll, wake;
    struct wheel parked, deadlines;
    pthread_mutex_t inbox_lock;
    struct visit *inbox; /* requests answered on other threads; newest first */
    int visits;          /* requests begun and not completed */
    bool quiet;          /* no longer listens */
    atomic_int connections, working, held;
};

struct server {
    struct server_config config;
    _Atomic(const struct http_policy *) policy;
    int listener;
    char address[80];
    atomic_bool draining;
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
void peer_notify(void *context, struct MHD_Connection *connection, void **peer_context,
                 enum MHD_ConnectionNotificationCode what);

#endif
