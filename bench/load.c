/* A load generator for benchmarks: so many connections, each sending its next request after the reply to the last.
 *
 * Unlike wrk it spreads the first requests over a time. Held replies keep the distribution of their requests: ten
 * thousand connections that start together would send one burst per hold, and measure that burst. */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/defs.h"
#include "base/str.h"
#include "load.h"

#define CONNECTIONS_MAX 60000
#define HEAD_MAX 2048
#define LAST_ANSWERS_NS (5 * NS_PER_S)

struct caller {
    int fd;
    enum { CALLER_IDLE, CALLER_CONNECTING, CALLER_WAITING } state;
    bool reading_body, last;
    int status;
    size_t head_len, body_left;
    int64_t sent_ns;
    char head[HEAD_MAX];
};

struct load {
    struct sockaddr_in to;
    struct message_parts parts;
    struct message message;
    int64_t caller_count, spread_ms, warm_ms, run_ms, numbers;
    uint64_t draw;
    int epoll, waiting;
    int64_t begun_ns, measured_from_ns, stop_ns, looked_ns;
    struct tally tally;
};

static struct caller callers[CONNECTIONS_MAX]; /* pages are allocated on first use */

static noreturn void fail(const char *what, const char *why)
{
    fprintf(stderr, "load: %s: %s\n", what, why);
    exit(1);
}

static bool measuring(const struct load *l, int64_t now)
{
    return now >= l->measured_from_ns && now < l->stop_ns;
}

/* Integral of the number of waiting connections over the measured time. */
static void look_at_waiting(struct load *l, int64_t now)
{
    int64_t from = l->looked_ns > l->measured_from_ns ? l->looked_ns : l->measured_from_ns;
    int64_t to = now < l->stop_ns ? now : l->stop_ns;
    l->looked_ns = now;
    if (to <= from)
        return;
    l->tally.waiting_area += (double)l->waiting * (double)(to - from) / (double)NS_PER_S;
    if (l->waiting < l->tally.waiting_least)
        l->tally.waiting_least = l->waiting;
}

static uint64_t draw_number(struct load *l)
{
    l->draw ^= l->draw << 13;
    l->draw ^= l->draw >> 7;
    l->draw ^= l->draw << 17;
    return l->draw % (uint64_t)l->numbers;
}

static void caller_close(struct load *l, struct caller *c)
{
    l->waiting -= c->state == CALLER_WAITING;
    c->state = CALLER_IDLE;
    if (c->fd < 0)
        return;
    /* Closes with a reset, so that no port stays in TIME_WAIT. */
    struct linger at_once = {.l_onoff = 1};
    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(c->fd);
    c->fd = -1;
}

static void caller_open(struct load *l, struct caller *c)
{
    int one = 1;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0)
        fail("cannot open a connection", strerror(errno));
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct epoll_event on = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = c};
    bool begun = connect(c->fd, (const struct sockaddr *)&l->to, sizeof l->to) == 0 || errno == EINPROGRESS;
    if (!begun || epoll_ctl(l->epoll, EPOLL_CTL_ADD, c->fd, &on) != 0) {
        l->tally.refused++;
        caller_close(l, c);
        return;
    }
    c->state = CALLER_CONNECTING;
}

static void caller_send(struct load *l, struct caller *c)
{
    message_number(&l->message, draw_number(l));
    c->head_len = c->body_left = 0;
    c->reading_body = c->last = false;
    c->sent_ns = clock_ns();
    l->waiting += c->state != CALLER_WAITING;
    c->state = CALLER_WAITING;
    ssize_t sent = send(c->fd, l->message.bytes, l->message.len, MSG_NOSIGNAL);
    if (sent == (ssize_t)l->message.len)
        return;
    l->tally.broken++; /* a request fits into the socket's buffer, so the connection is closed */
    caller_close(l, c);
}

static void caller_next(struct load *l, struct caller *c)
{
    int64_t now = clock_ns();
    look_at_waiting(l, now);
    if (measuring(l, now))
        tally_answer(&l->tally, c->status, now - c->sent_ns);
    if (now >= l->stop_ns) {
        caller_close(l, c);
    } else if (c->last) {
        caller_close(l, c);
        l->tally.reopened++;
        caller_open(l, c);
    } else {
        caller_send(l, c);
    }
}

static void caller_break(struct load *l, struct caller *c)
{
    bool connected = c->state == CALLER_WAITING;
    if (connected)
        l->tally.broken++;
    else
        l->tally.refused++;
    caller_close(l, c);
    if (connected && clock_ns() < l->stop_ns)
        caller_open(l, c);
}

/* Parses the head received so far; false if it is not an HTTP response. */
static bool parse_head(struct caller *c)
{
    struct head head;
    size_t len;
    int whole = head_read(c->head, c->head_len, &head, &len);
    if (whole < 0 || (whole == 0 && c->head_len == sizeof c->head))
        return false;
    if (whole == 0)
        return true;
    c->status = head.status;
    c->last = head.last;
    c->reading_body = true;
    c->body_left = head.body_len;
    size_t more = c->head_len - len;
    if (more > c->body_left)
        return false;
    c->body_left -= more;
    return true;
}

static void caller_read(struct load *l, struct caller *c)
{
    static char thrown_away[65536];
    while (c->state == CALLER_WAITING) {
        size_t size = c->reading_body ? sizeof thrown_away : sizeof c->head - c->head_len;
        if (c->reading_body && size > c->body_left)
            size = c->body_left;
        ssize_t got = recv(c->fd, c->reading_body ? thrown_away : c->head + c->head_len, size, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (got <= 0) {
            caller_break(l, c);
            return;
        }
        if (c->reading_body)
            c->body_left -= (size_t)got;
        else
            c->head_len += (size_t)got;
        if (!c->reading_body && !parse_head(c)) {
            caller_break(l, c);
            return;
        }
        if (c->reading_body && c->body_left == 0) {
            caller_next(l, c);
            return;
        }
    }
}

static void caller_event(struct load *l, struct caller *c, uint32_t events)
{
    if (c->state == CALLER_CONNECTING) {
        int failed = 0;
        socklen_t len = sizeof failed;
        getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &failed, &len);
        if (failed || (events & (EPOLLERR | EPOLLHUP)))
            caller_break(l, c);
        else if (events & EPOLLOUT)
            caller_send(l, c);
        return;
    }
    if (events & (EPOLLIN | EPOLLERR | EPOLLHUP | EPOLLRDHUP))
        caller_read(l, c);
}

/* Opens connections that are due; returns how many have been opened. */
static int64_t open_due(struct load *l, int64_t opened, int64_t now)
{
    int64_t due =
        l->spread_ms ? (now - l->begun_ns) * l->caller_count / (l->spread_ms * NS_PER_MS) + 1 : l->caller_count;
    for (; opened < due && opened < l->caller_count; opened++)
        caller_open(l, &callers[opened]);
    return opened;
}

static void run(struct load *l)
{
    struct epoll_event events[512];
    int64_t opened = 0, now = clock_ns();
    l->begun_ns = l->looked_ns = now;
    l->measured_from_ns = now + (l->spread_ms + l->warm_ms) * NS_PER_MS;
    l->stop_ns = l->measured_from_ns + l->run_ms * NS_PER_MS;
    l->tally.waiting_least = (int)l->caller_count;
    while (now < l->stop_ns || (l->waiting > 0 && now < l->stop_ns + LAST_ANSWERS_NS)) {
        if (now < l->stop_ns)
            opened = open_due(l, opened, now);
        int ready = epoll_wait(l->epoll, events, COUNT_OF(events), opened < l->caller_count ? 1 : 20);
        for (int i = 0; i < ready; i++)
            caller_event(l, events[i].data.ptr, events[i].events);
        now = clock_ns();
        look_at_waiting(l, now);
    }
}

static noreturn void usage(void)
{
    fputs("usage: load [OPTION...] ADDRESS:PORT PATH\n"
          "  --callers N      connections (1)\n"
          "  --spread MS      time over which they begin (0)\n"
          "  --warm MS        time that is not measured, after that (0)\n"
          "  --run MS         time that is measured (1000)\n"
          "  --body TEXT      sent as a POST\n"
          "  --header LINE    sent too; up to 16\n"
          "  --numbers N      a run of # in path, headers or body becomes a number below N (1)\n"
          "Prints one JSON object.\n",
          stderr);
    exit(2);
}

static void number(const char *text, int64_t most, int64_t *into)
{
    if (str_to_i64(str_of(text), 0, most, into))
        usage();
}

static void read_address(struct load *l, const char *text)
{
    struct str rest = str_of(text), host;
    char address[INET_ADDRSTRLEN];
    int64_t port;
    l->to.sin_family = AF_INET;
    if (!str_split(&rest, ':', &host) || str_copy(host, address, sizeof address) ||
        inet_pton(AF_INET, address, &l->to.sin_addr) != 1 || str_to_i64(rest, 1, 65535, &port))
        usage();
    l->to.sin_port = htons((uint16_t)port);
    l->parts.host = text;
}

static void read_options(struct load *l, int argc, char **argv)
{
    static const struct option known[] = {
        {"callers", required_argument, NULL, 'c'}, {"spread", required_argument, NULL, 's'},
        {"warm", required_argument, NULL, 'w'},    {"run", required_argument, NULL, 'r'},
        {"body", required_argument, NULL, 'b'},    {"header", required_argument, NULL, 'h'},
        {"numbers", required_argument, NULL, 'n'}, {0},
    };
    l->parts.method = "GET";
    l->caller_count = l->numbers = 1;
    l->run_ms = 1000;
    for (int o; (o = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        if (o == 'c')
            number(optarg, CONNECTIONS_MAX, &l->caller_count);
        else if (o == 's')
            number(optarg, 60000, &l->spread_ms);
        else if (o == 'w')
            number(optarg, 600000, &l->warm_ms);
        else if (o == 'r')
            number(optarg, 3600000, &l->run_ms);
        else if (o == 'n')
            number(optarg, INT64_MAX, &l->numbers);
        else if (o == 'b')
            l->parts.body = optarg;
        else if (o == 'h' && l->parts.header_count < COUNT_OF(l->parts.headers))
            l->parts.headers[l->parts.header_count++] = optarg;
        else
            usage();
    }
    if (argc - optind != 2 || l->caller_count < 1 || l->run_ms < 1 || l->numbers < 1)
        usage();
    if (l->parts.body)
        l->parts.method = "POST";
    read_address(l, argv[optind]);
    l->parts.path = argv[optind + 1];
}

static void raise_file_limit(int64_t connections)
{
    struct rlimit limit;
    rlim_t wanted = (rlim_t)connections + 16;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
        return;
    limit.rlim_cur = wanted;
    if (limit.rlim_max < wanted || setrlimit(RLIMIT_NOFILE, &limit) != 0)
        fail("too few files for so many connections", "raise ulimit -Hn");
}

int main(int argc, char **argv)
{
    static struct load l = {.draw = UINT64_C(0x9e3779b97f4a7c15)};
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* the benchmark has ended */
    read_options(&l, argc, argv);
    if (!message_write(&l.message, &l.parts))
        fail("cannot write the request", "it is too large or has too many numbers");
    raise_file_limit(l.caller_count);
    l.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (l.epoll < 0)
        fail("cannot begin", strerror(errno));
    for (int64_t i = 0; i < l.caller_count; i++)
        callers[i].fd = -1;

    run(&l);
    for (int64_t i = 0; i < l.caller_count; i++)
        caller_close(&l, &callers[i]);
    if (l.tally.answers == 0)
        fail("nothing was answered", l.parts.host);
    tally_print(&l.tally, (double)l.run_ms / 1000, stdout);
    return 0;
}
