#include "http/refusal.h"

#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "http/reply.h"

/* The largest head of a reply, with some to spare, and what the library keeps for each field of a request. */
#define REPLY_HEAD ((size_t)2 * 1024)
#define FIELD_RECORD 64

static enum MHD_Result add_size(void *context, enum MHD_ValueKind kind, const char *key, size_t key_len,
                                const char *value, size_t value_len)
{
    (void)value;
    size_t *size = context;
    *size += FIELD_RECORD;
    if (kind == MHD_HEADER_KIND && str_eq_nocase((struct str){key, key_len}, STR("Cookie")))
        *size += value_len; /* copied */
    return MHD_YES;
}

bool refusal_is_needed(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *head = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    size_t used = head ? head->header_size : 0;
    MHD_get_connection_values_n(connection, MHD_HEADER_KIND | MHD_COOKIE_KIND | MHD_GET_ARGUMENT_KIND, add_size, &used);
    return used > CONNECTION_MEMORY - REPLY_HEAD;
}

static void write_head(struct buf *out, const struct request *rq)
{
    buf_addf(out, "HTTP/1.1 %d %s\r\nConnection: close\r\nContent-Length: %zu\r\n", rq->reply.status,
             MHD_get_reason_phrase_for((unsigned)rq->reply.status), rq->reply.body.len);
    buf_addf(out, "Content-Type: %s\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n",
             rq->reply.content_type);
    buf_addf(out, "X-Correlation-Id: %s\r\n", rq->correlation_id);
    for (const struct reply_header *h = rq->reply.headers; h; h = h->next)
        buf_addf(out, "%s: %s\r\n", h->name, h->value);
    buf_addz(out, "\r\n");
}

/* Closing a socket with unread bytes resets the connection, and the client may never see the answer. */
static void drop_unread(int fd)
{
    char bytes[4096];
    for (int i = 0; i < 16 && recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0; i++)
        ;
}

void refusal_send(struct visit *visit, int status)
{
    struct request *rq = &visit->rq;
    int fd = MHD_get_connection_info(visit->connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    rq->arrived_ns = clock_ns();
    rq->family->refuse(rq, status);
    rq->reply.status = status;
    AUTO(buf) struct buf out = buf_new(4096);
    write_head(&out, rq);
    buf_add(&out, rq->reply.body);
    struct str text = buf_str(&out);
    drop_unread(fd);
    /* The replies before it have left: the library reads a request only after that, so there is room in the socket. */
    if (text.at && send(fd, text.at, text.len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)text.len) {
        visit->sent_ns = clock_ns();
        visit_count_answer(rq);
    }
    shutdown(fd, SHUT_WR);
}

static bool is_number(const char *digits)
{
    return *digits && digits[strspn(digits, "0123456789")] == '\0';
}

static int status_of(struct MHD_Connection *connection)
{
    const char *length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Content-Length");
    int64_t n;
    if (length && !is_number(length))
        return 400;
    return length && str_to_i64(str_of(length), 0, INT64_MAX, &n) ? 413 : 431;
}

/* A complete head whose handler was not called belongs to the request that the library is about to refuse: its
 * Content-Length is no number or too large, or its cookies do not fit. 0.9.75 sends the head of its own refusal twice.
 * The message itself is dropped: it may quote the request. */
void refusal_notice(void *context, const char *format, va_list arguments)
{
    (void)format, (void)arguments;
    const struct loop *loop = context;
    for (struct peer *peer = loop->longest_waiting; peer; peer = peer->behind) {
        if (!peer->target || !MHD_get_connection_info(peer->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE))
            continue;
        struct visit *visit = visit_new(peer->loop, peer->connection, peer->target, "");
        peer->target = NULL;
        if (!visit)
            return;
        visit_identify(visit);
        refusal_send(visit, status_of(peer->connection));
        visit_end(visit);
        return;
    }
}
