#include "http/server.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "http/loop.h"
#include "http/networks.h"

static enum err split_address(const char *address, char host[64], char port[8])
{
    const char *colon = strrchr(address, ':');
    if (!colon)
        return ERR_INPUT;
    struct str name = {address, (size_t)(colon - address)};
    if (name.len >= 2 && name.at[0] == '[' && name.at[name.len - 1] == ']')
        name = (struct str){name.at + 1, name.len - 2};
    enum err e = str_copy(name, host, 64);
    return e ? e : str_copy(str_of(colon + 1), port, 8);
}

/* One listening socket for all loops: the first idle loop accepts. */
static enum err listen_on(const char *address, int *ret_fd, struct why *why)
{
    char host[64], port[8];
    if (split_address(address, host, port))
        return why_set(why, ERR_INPUT, "\"%s\" is not an address to listen on", address);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV}, *found;
    int failed = getaddrinfo(host[0] ? host : NULL, port, &hints, &found);
    if (failed)
        return why_set(why, ERR_INPUT, "cannot listen on %s: %s", address, gai_strerror(failed));

    int one = 1;
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool up = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 &&
              bind(fd, found->ai_addr, found->ai_addrlen) == 0 && listen(fd, 4096) == 0;
    int reason = errno;
    freeaddrinfo(found);
    if (!up) {
        if (fd >= 0)
            close(fd);
        return why_set(why, ERR_SYSTEM, "cannot listen on %s: %s", address, strerror(reason));
    }
    *ret_fd = fd;
    return OK;
}

static void format_address(struct server *server)
{
    struct sockaddr_storage bound = {0};
    socklen_t len = sizeof bound;
    char host[64], port[8];
    if (getsockname(server->listener, (struct sockaddr *)&bound, &len) == 0 &&
        getnameinfo((struct sockaddr *)&bound, len, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) == 0)
        snprintf(server->address, sizeof server->address, "%s%s%s:%s", bound.ss_family == AF_INET6 ? "[" : "", host,
                 bound.ss_family == AF_INET6 ? "]" : "", port);
}

static void server_free(struct server *server, int opened)
{
    for (int i = 0; i < opened; i++)
        loop_close(&server->loops[i]);
    if (server->listener >= 0)
        close(server->listener);
    networks_free(server->networks);
    free(server->loops);
    free(server);
}

static enum err make_room_for_loops(struct server *server, struct why *why)
{
    const struct server_config *config = &server->config;
    int per_loop = config->connections_max / config->loops;
    server->connections_per_loop = per_loop > 0 ? per_loop : 1;
    server->loops = calloc((size_t)config->loops, sizeof *server->loops);
    if (config->connections_per_network)
        server->networks = networks_new((size_t)server->connections_per_loop * (size_t)config->loops);
    if (!server->loops || (config->connections_per_network && !server->networks))
        return why_set(why, ERR_MEMORY, "no memory for the HTTP server");
    return OK;
}

enum err server_start(const struct server_config *config, struct server **ret, struct why *why)
{
    struct server *server = calloc(1, sizeof *server);
    if (!server)
        return why_set(why, ERR_MEMORY, "no memory for the HTTP server");
    server->config = *config;
    server->listener = -1;
    atomic_store(&server->policy, config->policy);
    enum err e = make_room_for_loops(server, why);
    if (!e)
        e = listen_on(config->address, &server->listener, why);
    int opened = 0;
    while (!e && opened < config->loops)
        e = loop_open(&server->loops[opened++], server, why);
    if (e) {
        server_free(server, opened);
        return e;
    }
    format_address(server);

    for (int i = 0; i < config->loops; i++) {
        if (pthread_create(&server->loops[i].thread, NULL, loop_run, &server->loops[i]) != 0) {
            /* Nothing is freed: loops already running use it, and the process ends after a failed start. */
            return why_set(why, ERR_SYSTEM, "cannot start a thread for the HTTP server");
        }
    }
    log_info("listening", F_STR("listener", config->name), F_STR("address", server->address),
             F_INT("loops", config->loops));
    *ret = server;
    return OK;
}

bool server_stop(struct server *server, int64_t deadline_ns)
{
    if (!server)
        return true;
    atomic_store(&server->drain_until_ns, deadline_ns);
    atomic_store(&server->draining, true);
    bool all_answered = true;
    close(server->listener); /* the loops close their copies too, so that new connections are refused */
    server->listener = -1;
    for (int i = 0; i < server->config.loops; i++)
        loop_wake(&server->loops[i]);
    for (int i = 0; i < server->config.loops; i++) {
        void *unfinished;
        pthread_join(server->loops[i].thread, &unfinished);
        all_answered &= !unfinished;
    }
    if (all_answered)
        server_free(server, server->config.loops);
    return all_answered;
}

const char *server_address(const struct server *server)
{
    return server->address;
}

void server_set_policy(struct server *server, const struct http_policy *policy)
{
    atomic_store(&server->policy, policy);
}

struct server_state server_read_state(const struct server *server)
{
    struct server_state state = {0};
    for (int i = 0; i < server->config.loops; i++) {
        state.connections += atomic_load(&server->loops[i].connections);
        state.working += atomic_load(&server->loops[i].working);
        state.held += atomic_load(&server->loops[i].held);
        state.answered += atomic_load(&server->loops[i].answered);
    }
    return state;
}
