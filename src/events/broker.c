#include "events/broker.h"

#include <amqp.h>
#include <amqp_ssl_socket.h>
#include <amqp_tcp_socket.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/digest.h"
#include "events/inside.h"

#define CONNECT_NS (5 * NS_PER_S)
#define REPLY_NS (10 * NS_PER_S)
#define HEARTBEAT_S 10
#define FRAME_MAX 131072

static enum err read_option(struct broker *b, char *option, struct why *why)
{
    char *value = strchr(option, '=');
    if (!value)
        return why_set(why, ERR_INPUT, "a parameter of the URL has no value");
    *value++ = '\0';
    const struct {
        const char *name, **field;
    } known[] = {{"cacertfile", &b->ca_file}, {"certfile", &b->certificate_file}, {"keyfile", &b->key_file}};
    for (size_t i = 0; i < COUNT_OF(known); i++)
        if (strcmp(option, known[i].name) == 0) {
            *known[i].field = value;
            return OK;
        }
    return why_set(why, ERR_INPUT, "unknown parameter in the URL: %.40s; use cacertfile, certfile and keyfile", option);
}

/* Removes "?name=value&…" from the URL. */
static enum err read_options(struct broker *b, struct why *why)
{
    char *option = strchr(b->url, '?');
    while (option) {
        *option++ = '\0';
        char *next = strchr(option, '&');
        if (next)
            *next = '\0';
        enum err e = read_option(b, option, why);
        if (e)
            return e;
        option = next;
    }
    return OK;
}

static enum err read_url(struct broker *b, struct why *why)
{
    enum err e = read_options(b, why);
    if (e)
        return e;
    struct str url = str_of(b->url);
    bool known = str_starts(url, STR("amqp://")) || str_starts(url, STR("amqps://"));
    if (!known || url.at[url.len - 1] == ':' || url.len <= 8 || amqp_parse_url(b->url, &b->address) != AMQP_STATUS_OK)
        return why_set(why, ERR_INPUT, "not a URL such as amqp://user:password@host:5672/vhost");
    if (!!b->certificate_file != !!b->key_file)
        return why_set(why, ERR_INPUT, "certfile and keyfile must be set together");
    if (!b->address.ssl && (b->ca_file || b->key_file))
        return why_set(why, ERR_INPUT, "cacertfile, certfile and keyfile need amqps://");
    if (!*b->address.vhost)
        b->address.vhost = "/"; /* a trailing slash means the default vhost */
    return OK;
}

struct broker *broker_new(const char *url, struct why *why)
{
    struct broker *b = calloc(1, sizeof *b);
    if (b) {
        pthread_mutex_init(&b->lock, NULL);
        b->fd = -1;
        b->url = strdup(url);
        b->url_len = strlen(url);
        b->ids = calloc(BROKER_BATCH_MAX, sizeof *b->ids);
    }
    if (b && b->url && b->ids && read_url(b, why) == OK)
        return b;
    if (!b || !b->url || !b->ids)
        (void)why_set(why, ERR_MEMORY, "no memory for the broker");
    broker_free(b);
    return NULL;
}

void broker_free(struct broker *b)
{
    if (!b)
        return;
    broker_disconnect(b);
    if (b->url)
        secret_wipe(b->url, b->url_len);
    free(b->url);
    free(b->ids);
    pthread_mutex_destroy(&b->lock);
    free(b);
}

void broker_cleanup(struct broker **b)
{
    broker_free(*b);
}

enum err broker_check_url(const char *url, struct why *why)
{
    AUTO(broker) struct broker *b = broker_new(url, why);
    return b ? OK : ERR_INPUT;
}

struct timeval broker_timeval(int64_t ns)
{
    return (struct timeval){ns > 0 ? ns / NS_PER_S : 0, ns > 0 ? ns % NS_PER_S / NS_PER_US : 0};
}

enum err broker_lost_status(struct broker *b, struct why *why, const char *doing, int status)
{
    broker_disconnect(b);
    return why_set(why, ERR_CLOSED, "%s: %s", doing, amqp_error_string2(status));
}

enum err broker_closed_by(struct broker *b, struct why *why, const char *doing, const amqp_method_t *method)
{
    amqp_bytes_t text = {0, NULL};
    uint16_t code = 0;
    if (method->id == AMQP_CONNECTION_CLOSE_METHOD) {
        code = ((amqp_connection_close_t *)method->decoded)->reply_code;
        text = ((amqp_connection_close_t *)method->decoded)->reply_text;
    } else if (method->id == AMQP_CHANNEL_CLOSE_METHOD) {
        code = ((amqp_channel_close_t *)method->decoded)->reply_code;
        text = ((amqp_channel_close_t *)method->decoded)->reply_text;
    }
    b->refused_message = code == AMQP_CONTENT_TOO_LARGE || code == AMQP_PRECONDITION_FAILED || code == AMQP_FRAME_ERROR;
    enum err e = why_set(why, ERR_CLOSED, "%s: %.*s", doing, text.len ? (int)text.len : 16,
                         text.len ? (char *)text.bytes : "closed by broker");
    broker_disconnect(b);
    return e;
}

enum err broker_lost(struct broker *b, struct why *why, const char *doing, amqp_rpc_reply_t reply)
{
    if (reply.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION)
        return broker_closed_by(b, why, doing, &reply.reply);
    return broker_lost_status(b, why, doing,
                              reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION ? reply.library_error
                                                                                  : AMQP_STATUS_CONNECTION_CLOSED);
}

/* Trusts the system's CA certificates unless the URL has cacertfile. Host name and chain are always verified. */
static enum err prepare_tls(const struct broker *b, amqp_socket_t *socket, struct why *why)
{
    amqp_ssl_socket_set_verify_peer(socket, 1);
    amqp_ssl_socket_set_verify_hostname(socket, 1);
    if (b->ca_file ? amqp_ssl_socket_set_cacert(socket, b->ca_file) != AMQP_STATUS_OK
                   : SSL_CTX_set_default_verify_paths(amqp_ssl_socket_get_context(socket)) != 1)
        return why_set(why, ERR_CLOSED, "the CA certificates%s%s cannot be read", b->ca_file ? " in " : "",
                       b->ca_file ? b->ca_file : "");
    if (b->key_file && amqp_ssl_socket_set_key(socket, b->certificate_file, b->key_file) != AMQP_STATUS_OK)
        return why_set(why, ERR_CLOSED, "the certificate %s or its key cannot be read", b->certificate_file);
    if (amqp_ssl_socket_set_ssl_versions(socket, AMQP_TLSv1_2, AMQP_TLSvLATEST) != AMQP_STATUS_OK)
        return why_set(why, ERR_CLOSED, "TLS 1.2 is not available");
    return OK;
}

static bool publish_socket(struct broker *b)
{
    pthread_mutex_lock(&b->lock);
    b->fd = amqp_get_sockfd(b->connection);
    bool proceed = !b->interrupted;
    pthread_mutex_unlock(&b->lock);
    return proceed;
}

static enum err open_socket(struct broker *b, struct why *why)
{
    amqp_socket_t *socket = b->address.ssl ? amqp_ssl_socket_new(b->connection) : amqp_tcp_socket_new(b->connection);
    if (!socket)
        return why_set(why, ERR_CLOSED, "no memory for a socket");
    enum err e = b->address.ssl ? prepare_tls(b, socket, why) : OK;
    if (e)
        return e;
    struct timeval patience = broker_timeval(CONNECT_NS);
    int status = amqp_socket_open_noblock(socket, b->address.host, b->address.port, &patience);
    if (status != AMQP_STATUS_OK)
        return why_set(why, ERR_CLOSED, "connecting to %s:%d: %s", b->address.host, b->address.port,
                       amqp_error_string2(status));
    return publish_socket(b) ? OK : why_set(why, ERR_CLOSED, "interrupted");
}

enum err broker_open_channel(struct broker *b, struct why *why)
{
    amqp_channel_open(b->connection, BROKER_CHANNEL);
    amqp_rpc_reply_t reply = amqp_get_rpc_reply(b->connection);
    if (reply.reply_type == AMQP_RESPONSE_NORMAL) {
        amqp_confirm_select(b->connection, BROKER_CHANNEL);
        reply = amqp_get_rpc_reply(b->connection);
    }
    if (reply.reply_type != AMQP_RESPONSE_NORMAL)
        return broker_lost(b, why, "opening a channel", reply);
    b->next_tag = b->first_tag = 1;
    return OK;
}

enum err broker_connect(struct broker *b, struct why *why)
{
    broker_disconnect(b);
    b->refused_message = false;
    if (!(b->connection = amqp_new_connection()))
        return why_set(why, ERR_MEMORY, "no memory for a connection");
    struct timeval answer = broker_timeval(REPLY_NS);
    if (open_socket(b, why) || amqp_set_handshake_timeout(b->connection, &answer) != AMQP_STATUS_OK ||
        amqp_set_rpc_timeout(b->connection, &answer) != AMQP_STATUS_OK) {
        broker_disconnect(b);
        return ERR_CLOSED;
    }
    amqp_table_entry_t name = {.key = amqp_cstring_bytes("connection_name"),
                               .value = {.kind = AMQP_FIELD_KIND_UTF8, .value.bytes = amqp_cstring_bytes("reclaim")}};
    amqp_table_t properties = {1, &name};
    amqp_rpc_reply_t reply =
        amqp_login_with_properties(b->connection, b->address.vhost, 0, FRAME_MAX, HEARTBEAT_S, &properties,
                                   AMQP_SASL_METHOD_PLAIN, b->address.user, b->address.password);
    if (reply.reply_type != AMQP_RESPONSE_NORMAL)
        return broker_lost(b, why, "logging in", reply);
    return broker_open_channel(b, why);
}

/* Closes the socket without the closing handshake, which would block. The broker requeues unacknowledged messages. */
void broker_disconnect(struct broker *b)
{
    if (!b->connection)
        return;
    pthread_mutex_lock(&b->lock);
    b->fd = -1;
    pthread_mutex_unlock(&b->lock);
    amqp_destroy_connection(b->connection);
    b->connection = NULL;
}

/* The broker handles what was sent on a channel in order, but drops what is left of it when a socket is closed without notice. */
enum err broker_close(struct broker *b, struct why *why)
{
    amqp_rpc_reply_t reply = amqp_channel_close(b->connection, BROKER_CHANNEL, AMQP_REPLY_SUCCESS);
    if (reply.reply_type == AMQP_RESPONSE_NORMAL)
        reply = amqp_connection_close(b->connection, AMQP_REPLY_SUCCESS);
    if (reply.reply_type != AMQP_RESPONSE_NORMAL)
        return broker_lost(b, why, "closing", reply);
    broker_disconnect(b);
    return OK;
}

bool broker_is_up(const struct broker *b)
{
    return b->connection != NULL;
}

bool broker_refused_message(const struct broker *b)
{
    return b->refused_message;
}

void broker_interrupt(struct broker *b)
{
    pthread_mutex_lock(&b->lock);
    b->interrupted = true;
    if (b->fd >= 0)
        shutdown(b->fd, SHUT_RDWR);
    pthread_mutex_unlock(&b->lock);
}

enum err broker_check(struct broker *b)
{
    amqp_frame_t frame;
    struct timeval none = {0, 0};
    int status = amqp_simple_wait_frame_noblock(b->connection, &frame, &none);
    if (status == AMQP_STATUS_TIMEOUT)
        return OK;
    return broker_lost_status(b, NULL, "idle", status); /* any frame on an idle connection means that it is closing */
}

enum err broker_send_heartbeat(struct broker *b)
{
    amqp_frame_t beat = {.frame_type = AMQP_FRAME_HEARTBEAT};
    int status = amqp_send_frame(b->connection, &beat);
    return status == AMQP_STATUS_OK ? OK : broker_lost_status(b, NULL, "sending a heartbeat", status);
}
