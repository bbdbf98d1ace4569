/* A local server with scripted replies: HTTP like a mail provider's API, or SMTP. */
#ifndef TESTS_CLIENT_FAKE_H
#define TESTS_CLIENT_FAKE_H

#include <stddef.h>
#include <stdint.h>

enum fake_mode {
    FAKE_ANSWER,  /* replies with the status; for SMTP to the command named in `body` ("MAIL", "RCPT", "DATA", ".") */
    FAKE_SILENT,  /* reads the request and does not reply */
    FAKE_CLOSE,   /* reads the request and closes */
    FAKE_CUT,     /* announces a longer body than it sends, then closes */
    FAKE_NO_HTTP, /* replies with something that is not HTTP */
    FAKE_HUGE,    /* replies with 200 KiB */
    FAKE_TRICKLE, /* sends single bytes slowly, without end */
};

struct fake_step {
    enum fake_mode mode;
    int status;
    const char *body; /* NULL: {"id":"1"} */
    int delay_ms;
};

struct fake;

struct fake *fake_http(void);
struct fake *fake_smtp(void);
void fake_free(struct fake *fake);
const char *fake_url(const struct fake *fake);
/* One step per request; the last one repeats. They must stay valid. Without a script: 200. */
void fake_script(struct fake *fake, const struct fake_step *steps, size_t count);
int fake_count(struct fake *fake);
/* The n-th request with headers and body, or the SMTP message; valid until fake_free(). */
const char *fake_request(struct fake *fake, int n);
int64_t fake_when_ns(struct fake *fake, int n);

#endif
