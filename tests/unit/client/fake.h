/* A server on this machine that answers as told: by HTTP like a mail provider, or by SMTP. */
#ifndef TESTS_HTTP_FAKE_H
#define TESTS_HTTP_FAKE_H

#include <stddef.h>
#include <stdint.h>

enum fake_mode {
    FAKE_ANSWER,  /* with the status; by SMTP, to the command named in `body` ("MAIL", "RCPT", "DATA", ".") */
    FAKE_SILENT,  /* reads the request and says nothing */
    FAKE_CLOSE,   /* reads the request and closes */
    FAKE_CUT,     /* promises more body than it sends before it closes */
    FAKE_NO_HTTP, /* answers in no known language */
    FAKE_HUGE,    /* an answer of 200 KiB */
    FAKE_TRICKLE, /* a byte now and then, without end */
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
/* One step a request; the last one repeats. They must stay valid. At first: 200. */
void fake_script(struct fake *fake, const struct fake_step *steps, size_t count);
int fake_count(struct fake *fake);
/* The n-th request as it came, head and body, or the SMTP message; valid until fake_free. */
const char *fake_request(struct fake *fake, int n);
int64_t fake_when_ns(struct fake *fake, int n);

#endif
