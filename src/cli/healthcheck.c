/* `reclaim healthcheck`: asks the server of this machine whether it is ready, for containers and service managers. */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/commands.h"

#define HEALTH_NS (5 * NS_PER_S)
#define ANSWER_MAX 4096

/* "[::1]:8081" → "::1", "8081". A server that listens on every address is asked on the loopback one. */
static enum err split_address(const char *listen, char host[256], char port[8])
{
    const char *colon = strrchr(listen, ':');
    struct str name = {listen, colon ? (size_t)(colon - listen) : 0};
    if (!colon)
        return ERR_INPUT;
    if (name.len > 1 && name.at[0] == '[')
        name = (struct str){name.at + 1, name.len - 2};
    if (str_eq(name, STR("0.0.0.0")))
        name = STR("127.0.0.1");
    if (str_eq(name, STR("::")))
        name = STR("::1");
    enum err e = str_copy(name, host, 256);
    return e ? e : str_copy(str_of(colon + 1), port, 8);
}

static bool is_ready_for(int fd, short events, int64_t deadline_ns)
{
    struct pollfd on = {.fd = fd, .events = events};
    int64_t left_ns = deadline_ns - clock_ns();
    return left_ns > 0 && poll(&on, 1, (int)(left_ns / NS_PER_MS) + 1) == 1;
}

static int connect_to(const char *host, const char *port, int64_t deadline_ns)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM}, *found = NULL;
    if (getaddrinfo(host, port, &hints, &found))
        return -1;
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), fault = 0;
    socklen_t size = sizeof fault;
    bool refused = fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) != 0 && errno != EINPROGRESS;
    freeaddrinfo(found);
    if (fd >= 0 && !refused && is_ready_for(fd, POLLOUT, deadline_ns) &&
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &fault, &size) == 0 && fault == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* The whole answer, or as much as came before the deadline. */
static size_t ask(int fd, char into[ANSWER_MAX], int64_t deadline_ns)
{
    static const char request[] = "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    size_t len = 0;
    if (send(fd, request, sizeof request - 1, MSG_NOSIGNAL) != sizeof request - 1)
        return 0;
    while (len < ANSWER_MAX - 1 && is_ready_for(fd, POLLIN, deadline_ns)) {
        ssize_t got = recv(fd, into + len, ANSWER_MAX - 1 - len, 0);
        if (got <= 0)
            break;
        len += (size_t)got;
    }
    into[len] = '\0';
    return len;
}

enum err healthcheck_command(struct command_context *c)
{
    const char *listen = c->settings->ops_listen;
    char host[256], port[8], answer[ANSWER_MAX] = "";
    int64_t deadline_ns = clock_ns() + HEALTH_NS;
    if (split_address(listen, host, port) || strcmp(port, "0") == 0)
        return why_set(&c->why, ERR_INPUT, "RECLAIM_OPS_LISTEN (%s) names no port that could be asked", listen);
    int fd = connect_to(host, port, deadline_ns);
    if (fd < 0)
        return why_set(&c->why, ERR_CLOSED, "no server answers at %s (RECLAIM_OPS_LISTEN)", listen);
    size_t len = ask(fd, answer, deadline_ns);
    close(fd);
    const char *body = strstr(answer, "\r\n\r\n");
    if (len && strncmp(answer, "HTTP/1.1 200", 12) == 0)
        return OK;
    return why_set(&c->why, ERR_CLOSED, "the server at %s is not ready: %s", listen,
                   body ? body + 4 : "no answer in time");
}
