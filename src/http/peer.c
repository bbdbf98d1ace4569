/* Connections: how many there may be, how long each may keep the server waiting, and which one is closed for a new one. */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "http/loop.h"
#include "http/networks.h"

METRIC_COUNTER(cut_off, "reclaim_http_cut_off_total", "Connections closed because no whole request came in time.");
METRIC_COUNTER(refused, "reclaim_http_refused_connections_total",
               "Connections closed at once because their client network had as many as it may.");
METRIC_COUNTER(made_room, "reclaim_http_idle_closed_total",
               "Idle connections closed to make room for new ones, because all were in use.");

static bool is_exempt(const struct server *server, const struct ip *ip)
{
    static const struct ip none; /* of a unix socket */
    if (memcmp(ip, &none, sizeof none) == 0 || (ip_is_loopback(ip) && !server->config.counts_loopback))
        return true;
    return policy_trusts(atomic_load(&server->policy), ip);
}

/* Two loops may each accept a connection of the same network at the same time: the limit may be passed by as many. */
enum MHD_Result peer_may_connect(void *context, const struct sockaddr *address, socklen_t len)
{
    (void)len;
    const struct server *server = ((struct loop *)context)->server;
    struct ip ip = ip_of_sockaddr(address);
    if (!server->networks || is_exempt(server, &ip) ||
        networks_count(server->networks, &ip) < server->config.connections_per_network)
        return MHD_YES;
    counter_add(&refused, 1);
    return MHD_NO;
}

/* The list of peers that keep the server waiting, the longest first. */
static void leave_waiting(struct peer *peer)
{
    if (!peer->waits)
        return;
    struct loop *loop = peer->loop;
    *(peer->before ? &peer->before->behind : &loop->longest_waiting) = peer->behind;
    *(peer->behind ? &peer->behind->before : &loop->last_waiting) = peer->before;
    peer->before = peer->behind = NULL;
    peer->waits = false;
}

static void join_waiting(struct peer *peer)
{
    struct loop *loop = peer->loop;
    peer->before = loop->last_waiting;
    *(loop->last_waiting ? &loop->last_waiting->behind : &loop->longest_waiting) = peer;
    loop->last_waiting = peer;
    peer->waits = true;
}

struct peer *peer_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

void peer_wait(struct peer *peer, int64_t ns)
{
    if (!peer || peer->closing)
        return;
    leave_waiting(peer);
    join_waiting(peer);
    wheel_add(&peer->loop->deadlines, &peer->deadline, clock_ns() + ns);
}

void peer_send(struct peer *peer)
{
    if (!peer || peer->closing)
        return;
    leave_waiting(peer);
    join_waiting(peer);
}

void peer_work(struct peer *peer)
{
    if (!peer)
        return;
    leave_waiting(peer);
    wheel_cancel(&peer->loop->deadlines, &peer->deadline);
}

static void peer_started(struct loop *loop, struct MHD_Connection *connection, struct peer *peer)
{
    peer->loop = loop;
    peer->connection = connection;
    peer->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    peer->ip = ip_of_sockaddr(MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr);
    if (loop->server->networks && !is_exempt(loop->server, &peer->ip))
        peer->counted = networks_add(loop->server->networks, &peer->ip);
    peer_wait(peer, loop->server->config.request_deadline_ns);
}

void peer_notify(void *context, struct MHD_Connection *connection, void **peer_context,
                 enum MHD_ConnectionNotificationCode what)
{
    struct loop *loop = context;
    struct peer *peer = *peer_context;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        atomic_fetch_add(&loop->connections, 1);
        *peer_context = peer = calloc(1, sizeof *peer);
        if (peer) /* otherwise only libmicrohttpd's inactivity time-out applies */
            peer_started(loop, connection, peer);
        return;
    }
    if (atomic_fetch_sub(&loop->connections, 1) >= loop->server->connections_per_loop)
        loop->has_room = true;
    *peer_context = NULL;
    if (!peer)
        return;
    peer_work(peer);
    if (peer->closing)
        loop->closing--;
    if (peer->counted)
        networks_remove(loop->server->networks, &peer->ip);
    free(peer);
}

void peers_close_late(struct loop *loop)
{
    struct wheel_entry *entry;
    int64_t now = clock_ns();
    while ((entry = wheel_expire(&loop->deadlines, now))) {
        counter_add(&cut_off, 1);
        shutdown(OWNER_OF(entry, struct peer, deadline)->fd, SHUT_RDWR);
    }
}

/* Without those that are being closed. Read by other loops, which may see a value of a moment ago. */
static bool all_in_use(const struct server *server)
{
    for (int i = 0; i < server->config.loops; i++)
        if (atomic_load(&server->loops[i].connections) - atomic_load(&server->loops[i].closing) <
            server->connections_per_loop)
            return false;
    return true;
}

/* libmicrohttpd does not look at the listening socket while it has as many connections as it may. */
void peers_watch_listener(struct loop *loop)
{
    bool wanted = !loop->quiet && loop->longest_waiting && all_in_use(loop->server);
    if (wanted == loop->watches_listener)
        return;
    struct epoll_event event = {.events = EPOLLIN, .data.fd = loop->listener};
    if (epoll_ctl(loop->epoll, wanted ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, loop->listener, &event) == 0)
        loop->watches_listener = wanted;
}

void peers_make_room(struct loop *loop)
{
    struct peer *peer = loop->longest_waiting;
    int unread = 0;
    /* One whose bytes have come, but were not read, is not idle. */
    while (peer && ioctl(peer->fd, FIONREAD, &unread) == 0 && unread > 0)
        peer = peer->behind;
    if (!peer)
        return;
    peer_work(peer);
    peer->closing = true;
    atomic_fetch_add(&loop->closing, 1);
    counter_add(&made_room, 1);
    shutdown(peer->fd, SHUT_RDWR); /* libmicrohttpd notices and cleans up */
}
