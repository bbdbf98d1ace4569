#include "fake.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/defs.h"

#define SEEN_MAX 20000
#define PEERS_MAX 4096
#define REQUEST_MAX 65536

struct peer {
    struct fake *fake;
    int fd;
    pthread_t thread;
};

struct fake {
    bool smtp;
    int listener;
    char url[64];
    pthread_t thread;
    pthread_mutex_t lock; /* guards the members below */
    bool ending;
    const struct fake_step *steps;
    size_t step_count;
    char *seen[SEEN_MAX];
    int64_t when_ns[SEEN_MAX];
    int count;
    struct peer peers[PEERS_MAX];
    int peer_count;
};

static const struct fake_step fine = {FAKE_ANSWER, 200, NULL, 0};

/* Records the request and returns the step for it. */
static struct fake_step record(struct fake *f, const char *request)
{
    pthread_mutex_lock(&f->lock);
    struct fake_step step = fine;
    if (f->step_count)
        step = f->steps[(size_t)f->count < f->step_count ? (size_t)f->count : f->step_count - 1];
    if (f->count < SEEN_MAX) {
        f->when_ns[f->count] = clock_ns();
        f->seen[f->count++] = strdup(request);
    }
    pthread_mutex_unlock(&f->lock);
    return step;
}

static void send_all(int fd, const char *text, size_t len)
{
    while (len) {
        ssize_t n = send(fd, text, len, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        text += n;
        len -= (size_t)n;
    }
}

static void send_text(int fd, const char *text)
{
    send_all(fd, text, strlen(text));
}

/* Waits until the peer or fake_free() has closed the connection. */
static void wait_for_end(int fd)
{
    char bytes[256];
    while (recv(fd, bytes, sizeof bytes, 0) > 0)
        ;
}

static void answer(int fd, int status, size_t promised, const char *body, size_t len)
{
    char head[160];
    snprintf(head, sizeof head, "HTTP/1.1 %d Told\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n%s\r\n",
             status, promised, status / 100 == 3 ? "Location: http://127.0.0.1:1/\r\n" : "");
    send_text(fd, head);
    send_all(fd, body, len);
}

/* True when the connection stays open. */
static bool act_http(int fd, const struct fake_step *step)
{
    static char huge[200 * 1024];
    const char *body = step->body ? step->body : "{\"id\":\"1\"}";
    if (step->delay_ms)
        (void)poll(NULL, 0, step->delay_ms);
    switch (step->mode) {
    case FAKE_ANSWER:
        answer(fd, step->status, strlen(body), body, strlen(body));
        return true;
    case FAKE_HUGE:
        answer(fd, step->status, sizeof huge, huge, sizeof huge);
        return true;
    case FAKE_CUT:
        answer(fd, step->status, strlen(body) + 100, body, strlen(body));
        return false;
    case FAKE_NO_HTTP:
        send_text(fd, "\x16\x03\x01 what?\r\n");
        return false;
    case FAKE_TRICKLE:
        answer(fd, step->status, 1000000, body, 1);
        while (send(fd, " ", 1, MSG_NOSIGNAL) == 1)
            (void)poll(NULL, 0, 20);
        return false;
    case FAKE_SILENT:
        wait_for_end(fd);
        return false;
    case FAKE_CLOSE:
        return false;
    }
    return false;
}

/* Reads a complete request; false at the end of the connection. */
static bool read_http(int fd, char *into)
{
    size_t len = 0;
    for (;;) {
        ssize_t n = recv(fd, into + len, REQUEST_MAX - 1 - len, 0);
        if (n <= 0)
            return false;
        len += (size_t)n;
        into[len] = '\0';
        const char *end = strstr(into, "\r\n\r\n"), *length = strcasestr(into, "\r\nContent-Length:");
        size_t body = length && end && length < end ? (size_t)strtoul(length + 17, NULL, 10) : 0;
        if (end && len >= (size_t)(end + 4 - into) + body)
            return true;
    }
}

static void serve_http(struct fake *f, int fd)
{
    char *request = malloc(REQUEST_MAX);
    bool on = request != NULL;
    while (on && read_http(fd, request)) {
        struct fake_step step = record(f, request);
        on = act_http(fd, &step);
    }
    free(request);
}

static bool read_line(FILE *in, char *line, size_t size)
{
    return fgets(line, (int)size, in) != NULL;
}

/* Reads the message after DATA and removes the dot-stuffing. */
static bool read_message(FILE *in, char *into)
{
    char line[2048];
    size_t len = 0;
    while (read_line(in, line, sizeof line)) {
        if (strcmp(line, ".\r\n") == 0)
            return true;
        const char *text = line[0] == '.' ? line + 1 : line;
        if (len + strlen(text) < REQUEST_MAX)
            len += (size_t)snprintf(into + len, REQUEST_MAX - len, "%s", text);
    }
    return false;
}

static bool reply_to_command(const struct fake_step *step, const char *command, int fd, int usual)
{
    char line[64];
    bool meant = step->mode == FAKE_ANSWER && step->body && strncmp(step->body, command, strlen(step->body)) == 0;
    if (step->mode == FAKE_SILENT)
        wait_for_end(fd);
    if (step->mode != FAKE_ANSWER)
        return false;
    snprintf(line, sizeof line, "%d told so\r\n", meant ? step->status : usual);
    send_text(fd, line);
    return true;
}

/* A session uses one step, recorded at MAIL; the message then replaces the recorded text. */
static void serve_smtp(struct fake *f, int fd)
{
    char line[2048], *message = malloc(REQUEST_MAX);
    FILE *in = fdopen(dup(fd), "r");
    struct fake_step step = fine;
    int number = -1;
    bool on = in && message;
    send_text(fd, "220 fake\r\n");
    while (on && read_line(in, line, sizeof line)) {
        if (strncmp(line, "MAIL", 4) == 0) {
            step = record(f, line);
            pthread_mutex_lock(&f->lock);
            number = f->count - 1;
            pthread_mutex_unlock(&f->lock);
            on = reply_to_command(&step, "MAIL", fd, 250);
        } else if (strncmp(line, "RCPT", 4) == 0) {
            on = reply_to_command(&step, "RCPT", fd, 250);
        } else if (strncmp(line, "DATA", 4) == 0) {
            on = reply_to_command(&step, "DATA", fd, 354);
            if (on && !(step.body && strcmp(step.body, "DATA") == 0)) {
                on = read_message(in, message);
                pthread_mutex_lock(&f->lock);
                free(f->seen[number]);
                f->seen[number] = strdup(message);
                pthread_mutex_unlock(&f->lock);
                on = on && reply_to_command(&step, ".", fd, 250);
            }
        } else {
            send_text(fd, strncmp(line, "EHLO", 4) == 0 ? "250-fake\r\n250 8BITMIME\r\n" : "250 fine\r\n");
        }
    }
    if (in)
        fclose(in);
    free(message);
}

static void *serve(void *context)
{
    struct peer *p = context;
    if (p->fake->smtp)
        serve_smtp(p->fake, p->fd);
    else
        serve_http(p->fake, p->fd);
    shutdown(p->fd, SHUT_RDWR);
    return NULL;
}

static void *accept_all(void *context)
{
    struct fake *f = context;
    for (int fd; (fd = accept(f->listener, NULL, NULL)) >= 0;) {
        pthread_mutex_lock(&f->lock);
        struct peer *p = f->ending || f->peer_count == PEERS_MAX ? NULL : &f->peers[f->peer_count];
        if (p) {
            *p = (struct peer){.fake = f, .fd = fd};
            if (pthread_create(&p->thread, NULL, serve, p) == 0)
                f->peer_count++;
            else
                p = NULL;
        }
        pthread_mutex_unlock(&f->lock);
        if (!p)
            close(fd);
    }
    return NULL;
}

static struct fake *start(bool smtp)
{
    struct fake *f = calloc(1, sizeof *f);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    if (!f)
        abort();
    f->smtp = smtp;
    pthread_mutex_init(&f->lock, NULL);
    f->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(f->listener, (struct sockaddr *)&at, sizeof at) || listen(f->listener, 1024) ||
        getsockname(f->listener, (struct sockaddr *)&at, &len) || pthread_create(&f->thread, NULL, accept_all, f))
        abort();
    snprintf(f->url, sizeof f->url, smtp ? "smtp://127.0.0.1:%d" : "http://127.0.0.1:%d/send", ntohs(at.sin_port));
    return f;
}

struct fake *fake_http(void)
{
    return start(false);
}

struct fake *fake_smtp(void)
{
    return start(true);
}

void fake_free(struct fake *f)
{
    pthread_mutex_lock(&f->lock);
    f->ending = true;
    pthread_mutex_unlock(&f->lock);
    shutdown(f->listener, SHUT_RDWR);
    pthread_join(f->thread, NULL);
    close(f->listener);
    for (int i = 0; i < f->peer_count; i++) {
        shutdown(f->peers[i].fd, SHUT_RDWR);
        pthread_join(f->peers[i].thread, NULL);
        close(f->peers[i].fd);
    }
    for (int i = 0; i < f->count; i++)
        free(f->seen[i]);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

const char *fake_url(const struct fake *f)
{
    return f->url;
}

void fake_script(struct fake *f, const struct fake_step *steps, size_t count)
{
    pthread_mutex_lock(&f->lock);
    f->steps = steps;
    f->step_count = count;
    pthread_mutex_unlock(&f->lock);
}

int fake_count(struct fake *f)
{
    pthread_mutex_lock(&f->lock);
    int count = f->count;
    pthread_mutex_unlock(&f->lock);
    return count;
}

const char *fake_request(struct fake *f, int n)
{
    pthread_mutex_lock(&f->lock);
    const char *request = n < f->count ? f->seen[n] : NULL;
    pthread_mutex_unlock(&f->lock);
    return request;
}

int64_t fake_when_ns(struct fake *f, int n)
{
    pthread_mutex_lock(&f->lock);
    int64_t when_ns = n < f->count ? f->when_ns[n] : 0;
    pthread_mutex_unlock(&f->lock);
    return when_ns;
}
