/* Connects to the servers of a URL and sets up the session. */
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/digest.h"
#include "pg/inside.h"

#define HOSTS_MAX 16
#define HOST_SIZE 256
#define PARAMS_MAX 64

struct params {
    const char *keys[PARAMS_MAX + 1], *values[PARAMS_MAX + 1];
    int count;
};

/* Used for options that the URL does not set. An unreachable peer is detected within 15 to 25 seconds when idle. */
static const struct {
    const char *key, *value;
} defaults[] = {
    {"fallback_application_name", "reclaim"},
    {"keepalives_idle", "10"},
    {"keepalives_interval", "5"},
    {"keepalives_count", "3"},
    {"tcp_user_timeout", "15000"},
};

void pg_options_free(PQconninfoOption *options)
{
    for (PQconninfoOption *o = options; o && o->keyword; o++)
        if (o->val && !strcmp(o->keyword, "password"))
            secret_wipe(o->val, strlen(o->val));
    PQconninfoFree(options);
}

/* libpq's error message is dropped because it may quote the URL with its password. */
enum err pg_parse_url(const char *url, PQconninfoOption **ret, struct why *why)
{
    char *message = NULL;
    *ret = PQconninfoParse(url, &message);
    if (!*ret && !message)
        return why_set(why, ERR_MEMORY, "no memory for the database URL");
    PQfreemem(message);
    if (!*ret)
        return why_set(why, ERR_INPUT,
                       "the database URL cannot be read; postgresql://user:password@host:port/database was expected");
    return OK;
}

const char *pg_option(const PQconninfoOption *options, const char *key)
{
    for (const PQconninfoOption *o = options; o->keyword; o++)
        if (!strcmp(o->keyword, key))
            return o->val;
    return NULL;
}

static size_t list_length(const char *list)
{
    size_t n = 1;
    for (; list && *list; list++)
        n += *list == ',';
    return n;
}

static size_t host_count(const PQconninfoOption *options)
{
    const char *addresses = pg_option(options, "hostaddr");
    return list_length(addresses && *addresses ? addresses : pg_option(options, "host"));
}

enum err pg_check_url(const char *url, struct why *why)
{
    PQconninfoOption *options = NULL;
    enum err e = pg_parse_url(url, &options, why);
    if (e)
        return e;
    size_t hosts = host_count(options), names = list_length(pg_option(options, "host"));
    size_t ports = list_length(pg_option(options, "port"));
    if (hosts > HOSTS_MAX)
        e = why_set(why, ERR_INPUT, "the database URL names more than %d hosts", HOSTS_MAX);
    else if ((names != 1 || pg_option(options, "host")) && names != hosts)
        e = why_set(why, ERR_INPUT, "the database URL names %zu hosts but %zu addresses", names, hosts);
    else if (ports != 1 && ports != hosts)
        e = why_set(why, ERR_INPUT, "the database URL names %zu ports for %zu hosts", ports, hosts);
    pg_options_free(options);
    return e;
}

static void add_param(struct params *p, const char *key, const char *value)
{
    if (!value || p->count == PARAMS_MAX)
        return;
    p->keys[p->count] = key;
    p->values[p->count++] = value;
}

/* An entry of a comma-separated list; a list of one applies to every host. NULL when it is empty or absent. */
static const char *list_entry(const char *list, size_t index, char into[HOST_SIZE])
{
    if (!list)
        return NULL;
    struct str rest = str_of(list), part = rest;
    if (strchr(list, ','))
        for (size_t i = 0; i <= index; i++)
            if (!str_split(&rest, ',', &part))
                return NULL;
    return part.len && !str_copy(part, into, HOST_SIZE) ? into : NULL;
}

static enum err connect_failed(const PGconn *conn, struct why *why)
{
    const char *text = PQerrorMessage(conn);
    size_t line = strcspn(text, "\n");
    /* Verbose messages read "…FATAL:  28P01: …": libpq 15 has the SQLSTATE of a failed connect nowhere else. */
    const char *state = strstr(text, ":  ");
    bool answered = state && state + 10 < text + line && state[8] == ':' &&
                    strspn(state + 3, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 5;
    /* Starting up, shutting down, too many connections: a retry may succeed. */
    bool retryable = answered && (!strncmp(state + 3, "57", 2) || !strncmp(state + 3, "53", 2));
    bool permanent = (answered && !retryable) || PQconnectionNeedsPassword(conn);
    return why_set(why, permanent ? ERR_DATABASE : ERR_CLOSED, "%.*s", (int)(line < INT_MAX ? line : 0), text);
}

/* Not PQconnectdbParams(), which has no deadline: connect_timeout counts whole seconds per host. */
static enum err finish_connecting(struct pg *pg, int64_t deadline_ns, struct why *why)
{
    PostgresPollingStatusType wants = PGRES_POLLING_WRITING;
    pg_pulse_asked(pg);
    while (wants != PGRES_POLLING_OK) {
        if (wants == PGRES_POLLING_FAILED || PQstatus(pg->conn) == CONNECTION_BAD)
            return connect_failed(pg->conn, why);
        short events = wants == PGRES_POLLING_READING ? POLLIN : POLLOUT;
        struct pollfd on[2] = {{.fd = PQsocket(pg->conn), .events = events}, {.fd = pg->give_up_fd, .events = POLLIN}};
        int ms = pg_wait_ms(pg, deadline_ns), ready = ms ? poll(on, 2, ms) : 0;
        if (ms == 0 || (ready == 0 && pg_is_given_up(pg)))
            return why_set(why, ERR_CLOSED, "the database at %s did not reply in time", PQhost(pg->conn));
        if (ready <= 0)
            continue;
        if (on[1].revents)
            return why_set(why, ERR_CLOSED, "connecting to the database was given up");
        if (on[0].revents & ~POLLOUT)
            pg_pulse_answered(pg);
        wants = PQconnectPoll(pg->conn);
    }
    return OK;
}

/* Notices are not logged, because they may quote data. A FATAL one means that the server ends the session. */
static void on_notice(void *context, const PGresult *result)
{
    struct pg *pg = context;
    const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    if (severity && (!strcmp(severity, "FATAL") || !strcmp(severity, "PANIC")))
        pg->session_ending = true;
}

static enum err connect_one(struct pg *pg, const PQconninfoOption *options, size_t index, int64_t deadline_ns,
                            struct why *why)
{
    char host[HOST_SIZE], address[HOST_SIZE], port[HOST_SIZE];
    struct params p = {.count = 0};
    for (const PQconninfoOption *o = options; o->keyword; o++)
        if (strcmp(o->keyword, "host") != 0 && strcmp(o->keyword, "hostaddr") != 0 && strcmp(o->keyword, "port") != 0 &&
            strcmp(o->keyword, "client_encoding") != 0)
            add_param(&p, o->keyword, o->val);
    add_param(&p, "host", list_entry(pg_option(options, "host"), index, host));
    add_param(&p, "hostaddr", list_entry(pg_option(options, "hostaddr"), index, address));
    add_param(&p, "port", list_entry(pg_option(options, "port"), index, port));
    add_param(&p, "client_encoding", "UTF8");
    for (size_t i = 0; i < COUNT_OF(defaults); i++)
        if (!pg_option(options, defaults[i].key))
            add_param(&p, defaults[i].key, defaults[i].value);
    if (host_count(options) > 1 && !pg_option(options, "target_session_attrs"))
        add_param(&p, "target_session_attrs", "read-write");

    pg->conn = PQconnectStartParams(p.keys, p.values, 0);
    if (!pg->conn)
        return why_set(why, ERR_MEMORY, "no memory for a database connection");
    PQsetErrorVerbosity(pg->conn, PQERRORS_VERBOSE);
    PQsetNoticeReceiver(pg->conn, on_notice, pg);
    return finish_connecting(pg, deadline_ns, why);
}

/* Through a transaction pooler, the backend's process id differs from that of the handshake: session settings must not
 * be changed then. client_connection_check_interval (since 14, not on all systems) cancels statements of a client that
 * disconnected. */
static const struct statement session_begin = {
    .name = "session_begin",
    .sql = "SELECT pg_catalog.pg_backend_pid() = $1::int4 AS direct,"
           " CASE WHEN pg_catalog.pg_backend_pid() = $1::int4 THEN"
           " pg_catalog.set_config('statement_timeout', $2, false)"
           " || pg_catalog.set_config('idle_in_transaction_session_timeout', '60000', false)"
           " || pg_catalog.set_config('default_transaction_isolation', 'read committed', false)"
           " || (SELECT pg_catalog.set_config(name, '1000', false) FROM pg_catalog.pg_settings"
           "     WHERE name = 'client_connection_check_interval' AND pg_catalog.version() LIKE '%linux%') END AS set",
    .params = 2,
    .columns = "direct:bool set:text",
};

static enum err begin_session(struct pg *pg, int64_t deadline_ns, struct why *why)
{
    if (PQsetnonblocking(pg->conn, 1) || !PQenterPipelineMode(pg->conn))
        return why_set(why, ERR_SYSTEM, "the database connection cannot be used without blocking");
    pg->session_ending = false;
    pg->named = false;
    struct pg_call call = {.ask = &session_begin,
                           .args = {pg_i64(PQbackendPID(pg->conn)), pg_i64(STATEMENT_TIMEOUT_MS)}};
    enum err e = pg_ask(pg, &call, deadline_ns);
    if (e)
        return why_set(why, e == ERR_DATABASE ? e : ERR_CLOSED, "the database did not begin a session: %s%s%s",
                       err_name(e), call.sqlstate[0] ? ", SQLSTATE " : "", call.sqlstate);
    pg->pooled = pg->pooler_detected || !pg_get_bool(&call, 0, 0);
    pg->named = pg->prepare == PG_PREPARE_ON || (pg->prepare == PG_PREPARE_AUTO && !pg->pooled);
    return OK;
}

enum err pg_connect(struct pg *pg, int64_t deadline_ns, struct why *why)
{
    pg_disconnect(pg);
    enum err e = pg_check_url(pg->url, why);
    if (e)
        return e;
    PQconninfoOption *options = NULL;
    e = pg_parse_url(pg->url, &options, why);
    if (e)
        return e;
    /* Each host gets its share of the time, so that one that does not respond does not use up all of it. */
    size_t hosts = host_count(options);
    for (size_t i = 0; i < hosts; i++) {
        int64_t now = clock_ns(), left = deadline_ns > now ? deadline_ns - now : 0;
        int64_t share_ns = now + left / (int64_t)(hosts - i);
        e = connect_one(pg, options, i, share_ns, why);
        if (!e)
            e = begin_session(pg, share_ns, why);
        if (!e)
            break;
        pg_disconnect(pg);
    }
    pg_options_free(options);
    return e;
}

void pg_disconnect(struct pg *pg)
{
    if (pg->conn)
        PQfinish(pg->conn);
    pg->conn = NULL;
    pg->pooled = pg->named = false;
    memset(pg->prepared, 0, sizeof pg->prepared);
    pg->prepared_count = 0;
}

bool pg_is_alive(struct pg *pg)
{
    while (pg->conn) {
        struct pollfd on = {.fd = PQsocket(pg->conn), .events = POLLIN};
        if (!pg->session_ending && PQstatus(pg->conn) == CONNECTION_OK && poll(&on, 1, 0) == 0)
            return true;
        /* Unrequested input: a notice, a notification or the end of the session. PQisBusy() makes libpq parse it. */
        if (pg->session_ending || !PQconsumeInput(pg->conn) || PQisBusy(pg->conn))
            pg_disconnect(pg);
    }
    return false;
}
