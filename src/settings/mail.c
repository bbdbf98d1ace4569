/* The types of settings that say how mails are sent. */
#include <string.h>

#include "client/client.h"
#include "mail/mail.h"
#include "settings/table.h"

#define URL_MAX 2048

static enum err parse_from(const struct setting *row, struct str text, struct arena *arena, void *field,
                           struct str *wrong)
{
    (void)row;
    (void)arena;
    (void)wrong;
    struct mail_from from;
    if (mail_from_parse(text, &from))
        return ERR_INPUT;
    *(const char **)field = text.at;
    return OK;
}

static void expects_from(const struct setting *row, struct buf *out)
{
    (void)row;
    buf_addz(out, "an address such as reclaim@example.com or Reclaim <reclaim@example.com>");
}

const struct setting_type setting_mail_from = {parse_from, expects_from, NULL};

static enum err parse_url(struct str text, enum client_protocol protocol, void *field)
{
    if (text.len > URL_MAX || client_check_url(text.at, protocol))
        return ERR_INPUT;
    *(const char **)field = text.at;
    return OK;
}

static enum err parse_http_url(const struct setting *row, struct str text, struct arena *arena, void *field,
                               struct str *wrong)
{
    (void)row;
    (void)arena;
    (void)wrong;
    return parse_url(text, CLIENT_HTTP, field);
}

static void expects_http_url(const struct setting *row, struct buf *out)
{
    (void)row;
    buf_addz(out, "an https:// URL, or http:// to this machine (127.0.0.1, [::1] or localhost)");
}

static enum err parse_smtp_url(const struct setting *row, struct str text, struct arena *arena, void *field,
                               struct str *wrong)
{
    (void)row;
    (void)arena;
    (void)wrong;
    return parse_url(text, CLIENT_SMTP, field);
}

static void expects_smtp_url(const struct setting *row, struct buf *out)
{
    (void)row;
    buf_addz(out, "a URL such as smtps://user:password@mail.example.com or smtp://mail.example.com:587 (in user and "
                  "password, / is written %2F and @ %40)");
}

/* Everything before the last @ is user and password, also when an @ in the password was not escaped. */
void setting_show_url(struct str text, struct buf *out)
{
    const char *slashes = memmem(text.at, text.len, "://", 3);
    const char *at = memrchr(text.at, '@', text.len);
    if (!at) {
        buf_add(out, text);
        return;
    }
    if (slashes && slashes < at)
        buf_add(out, (struct str){text.at, (size_t)(slashes + 3 - text.at)});
    buf_addz(out, "***");
    buf_add(out, (struct str){at, (size_t)(text.at + text.len - at)});
}

const struct setting_type setting_http_url = {parse_http_url, expects_http_url, setting_show_url};
const struct setting_type setting_smtp_url = {parse_smtp_url, expects_smtp_url, setting_show_url};
