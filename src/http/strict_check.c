/* Whether the libmicrohttpd that was loaded reads heads as strict.c expects. Versions 0.9.75 to 1.0 have the same soname, so
 * that the library may be another one than the headers of the build. */
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/str.h"
#include "http/strict.h"

#define RUNS_MAX 16 /* of the library's loop, for one head */

static const struct {
    struct str head;
    bool sound;
} cases[] = {
    {STR("GET / HTTP/1.1\r\nHost: a\r\nX-One: b\r\nX-Two:   c d\r\nX-None:\r\n\r\n"), true},
    {STR("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), true},
    {STR("GET / HTTP/1.0\r\n\r\n"), true},
    {STR("GET / HTTP/1.1\r\nHost: a\r\nX-One: b\r\n c\r\n\r\n"), false},
    {STR("GET / HTTP/1.1\r\nHost: a\r\nX-One:\r\n b\r\nX-Two: c\r\n\r\n"), false},
    {STR("GET / HTTP/1.1\r\nHost: a\r\n: b\r\nX-Two: c\r\n\r\n"), false},
    {STR("GET / HTTP/1.1\r\nHost: a\r\nX-One\r\nX-Two: c\r\n\r\n"), false},
    {STR("GET / HTTP/1.1\r\nHost: a\r\nX-One : b\r\n\r\n"), false},
    {STR("GET / HTTP/1.1\r\nHost: a\r\nX-One: b\0c\r\n\r\n"), false},
    {STR("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), false},
    {STR("GET / HTTP/1.1\r\n\r\n"), false},
};

static void ignore_message(void *context, const char *format, va_list arguments)
{
    (void)context, (void)format, (void)arguments;
}

static enum MHD_Result judge(void *context, struct MHD_Connection *connection, const char *url, const char *method,
                             const char *version, const char *data, size_t *data_len, void **visit)
{
    (void)url, (void)data, (void)visit;
    *data_len = 0;
    *(bool *)context = strict_accepts(connection, method, version);
    return MHD_NO; /* closes the connection */
}

/* Has the library read the head from a socket until it hands it over, or closes the connection. */
static enum err read_head(struct MHD_Daemon *daemon, struct str head)
{
    int ends[2];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char answer[1024];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends))
        return ERR_SYSTEM;
    ssize_t sent = write(ends[0], head.at, head.len);
    bool added = MHD_add_connection(daemon, ends[1], (struct sockaddr *)&address, sizeof address) == MHD_YES;
    for (int i = 0; added && i < RUNS_MAX && read(ends[0], answer, sizeof answer) != 0; i++)
        (void)MHD_run(daemon);
    close(ends[0]);
    (void)MHD_run(daemon);
    return added && sent == (ssize_t)head.len ? OK : ERR_SYSTEM;
}

static enum err refuse(struct why *why, const char *problem)
{
    return why_set(why, ERR_SYSTEM, "libmicrohttpd %s %s; this program was built for %x.%x.%x: build it again here",
                   MHD_get_version(), problem, MHD_VERSION >> 24, (MHD_VERSION >> 16) & 0xff,
                   (MHD_VERSION >> 8) & 0xff);
}

enum err strict_check_library(struct why *why)
{
    bool accepted = false;
    enum err e = OK;
    struct MHD_Daemon *daemon =
        MHD_start_daemon(MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG, 0, NULL, NULL, judge, &accepted,
                         MHD_OPTION_EXTERNAL_LOGGER, ignore_message, NULL, STRICT_OPTIONS, MHD_OPTION_END);
    if (!daemon)
        return refuse(why, "does not start");
    for (size_t i = 0; !e && i < COUNT_OF(cases); i++) {
        accepted = false;
        if (read_head(daemon, cases[i].head))
            e = refuse(why, "takes no connection to be checked with");
        else if (accepted != cases[i].sound)
            e = refuse(why, accepted ? "accepts a request head that must be refused"
                                     : "refuses a request head that must be accepted");
    }
    MHD_stop_daemon(daemon);
    return e;
}
