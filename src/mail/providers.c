/* The providers that are reached over the network: Resend, SendGrid, and any server that speaks SMTP. */
#include <stdio.h>
#include <string.h>

#include "base/digest.h"
#include "mail/inside.h"

/* The same for every try and every instance that sends this mail, so that a provider or a reader can drop repeats. */
static void make_key(struct delivery *d)
{
    char seed[MAIL_ADDRESS_MAX + 80], hex[DIGEST_HEX_LEN + 1];
    int len = snprintf(seed, sizeof seed, "%lld %s %s", (long long)d->item->id, d->mail.reference, d->mail.to);
    struct digest digest = digest_sha256((struct str){seed, (size_t)len});
    digest_hex(&digest, hex);
    snprintf(d->key, sizeof d->key, "%.*s", MAIL_KEY_LEN, hex);
    secret_wipe(seed, sizeof seed);
}

static enum try_result judge_http(const struct client_call *call)
{
    bool answered = !call->err || call->err == ERR_FULL; /* only the status counts, not the body */
    if (answered && call->status >= 200 && call->status < 300)
        return TRY_DELIVERED;
    bool transient = !answered || call->status == 408 || call->status == 429 || call->status >= 500;
    return transient && call->err != ERR_INPUT ? TRY_AGAIN : TRY_FINAL;
}

/* RFC 5321, 4.2.1: 4yz is transient, 5yz permanent. */
static enum try_result judge_smtp(const struct client_call *call)
{
    if (call->err)
        return call->err == ERR_INPUT ? TRY_FINAL : TRY_AGAIN;
    return call->status < 400 ? TRY_DELIVERED : call->status < 500 ? TRY_AGAIN : TRY_FINAL;
}

static void call_done(struct client_call *call)
{
    struct delivery *d = OWNER_OF(call, struct delivery, call);
    enum try_result result = call->sender ? judge_smtp(call) : judge_http(call);
    buf_free(&d->body);
    delivery_tried(d, result, call->status, call->err);
}

static enum err begin_call(struct delivery *d)
{
    const struct provider *p = delivery_provider(d);
    make_key(d);
    d->body = buf_new(2 * MAIL_BYTES_MAX);
    p->write(d, &d->body);
    struct str body = buf_str(&d->body);
    d->call = (struct client_call){.url = p->url, .body = body, .limit_ns = d->post->try_ns, .done = call_done};
    if (!body.at || d->mail.text.failed || d->mail.html.failed) {
        buf_free(&d->body);
        return ERR_MEMORY;
    }
    if (p->authorization) {
        snprintf(d->key_header, sizeof d->key_header, "Idempotency-Key: %s", d->key);
        d->headers[0] = p->authorization;
        d->headers[1] = "Content-Type: application/json";
        d->headers[2] = p->takes_key ? d->key_header : NULL;
        d->headers[3] = NULL;
        d->call.headers = d->headers;
    } else {
        d->call.sender = d->post->from.address;
        d->call.recipient = d->mail.to;
    }
    client_send(work_client(d->item->engine), &d->call);
    return OK;
}

static bool cancel_call(struct delivery *d)
{
    client_cancel(work_client(d->item->engine), &d->call);
    buf_free(&d->body);
    return true;
}

static void add_field(struct json_writer *w, const char *key, struct str value)
{
    json_key(w, key);
    json_str(w, value);
}

static void add_headers(struct json_writer *w, const struct delivery *d)
{
    json_key(w, "headers");
    json_open(w, '{');
    add_field(w, "Auto-Submitted", STR("auto-generated"));
    add_field(w, "X-Entity-Ref-ID", str_of(d->mail.reference));
    json_close(w, '}');
}

static void write_resend(struct delivery *d, struct buf *out)
{
    char from[MAIL_NAME_MAX * 2 + MAIL_ADDRESS_MAX + 8];
    struct buf whole = buf_over(from, sizeof from);
    mime_add_from(&whole, &d->post->from, false);
    struct json_writer w = json_to(out);
    json_open(&w, '{');
    add_field(&w, "from", buf_str(&whole));
    json_key(&w, "to");
    json_open(&w, '[');
    json_str(&w, str_of(d->mail.to));
    json_close(&w, ']');
    add_field(&w, "subject", str_of(d->mail.subject));
    add_field(&w, "text", buf_str(&d->mail.text));
    add_field(&w, "html", buf_str(&d->mail.html));
    add_headers(&w, d);
    json_close(&w, '}');
}

static void add_content(struct json_writer *w, struct str type, const struct buf *value)
{
    json_open(w, '{');
    add_field(w, "type", type);
    add_field(w, "value", buf_str(value));
    json_close(w, '}');
}

/* Codes are confidential: no counting of opens and clicks. */
static void add_no_tracking(struct json_writer *w)
{
    static const char *const kinds[] = {"click_tracking", "open_tracking"};
    json_key(w, "tracking_settings");
    json_open(w, '{');
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        json_key(w, kinds[i]);
        json_open(w, '{');
        json_key(w, "enable");
        json_bool(w, false);
        json_close(w, '}');
    }
    json_close(w, '}');
}

static void write_sendgrid(struct delivery *d, struct buf *out)
{
    const struct mail_from *from = &d->post->from;
    struct json_writer w = json_to(out);
    json_open(&w, '{');
    json_key(&w, "personalizations");
    json_open(&w, '[');
    json_open(&w, '{');
    json_key(&w, "to");
    json_open(&w, '[');
    json_open(&w, '{');
    add_field(&w, "email", str_of(d->mail.to));
    json_close(&w, '}');
    json_close(&w, ']');
    json_close(&w, '}');
    json_close(&w, ']');
    json_key(&w, "from");
    json_open(&w, '{');
    add_field(&w, "email", str_of(from->address));
    if (*from->name)
        add_field(&w, "name", str_of(from->name));
    json_close(&w, '}');
    add_field(&w, "subject", str_of(d->mail.subject));
    json_key(&w, "content");
    json_open(&w, '[');
    add_content(&w, STR("text/plain"), &d->mail.text);
    add_content(&w, STR("text/html"), &d->mail.html);
    json_close(&w, ']');
    add_headers(&w, d);
    add_no_tracking(&w);
    json_close(&w, '}');
}

static void write_smtp(struct delivery *d, struct buf *out)
{
    mime_write(out, &(struct mime_message){
                        .from = &d->post->from, .mail = &d->mail, .key = d->key, .date_us = clock_wall_us()});
}

void provider_resend(struct provider *p)
{
    *p = (struct provider){
        .name = "resend", .begin = begin_call, .cancel = cancel_call, .write = write_resend, .takes_key = true};
}

void provider_sendgrid(struct provider *p)
{
    *p = (struct provider){.name = "sendgrid", .begin = begin_call, .cancel = cancel_call, .write = write_sendgrid};
}

void provider_smtp(struct provider *p)
{
    *p = (struct provider){.name = "smtp", .begin = begin_call, .cancel = cancel_call, .write = write_smtp};
}
