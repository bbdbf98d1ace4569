/* /mailbox: the mails of a demonstration, as a mail client shows them, from /mailbox.json. */
#include <string.h>

#include "pages/page.h"
#include "pages/routes.h"
#include "text/html.h"

#define TEXT_MAX ((size_t)256 * 1024)

/* A mail may bring styles, but no script, and it loads nothing. */
static const char foreign_policy[] = "default-src 'none'; style-src 'unsafe-inline'; sandbox";

static void read_mails(struct request *rq, bool (*then)(struct page *p))
{
    static const struct page_read mails = {.name = "mailbox", .path = {"/mailbox.json", sizeof "/mailbox.json" - 1}};
    struct page *p = page_begin(rq);
    if (!p)
        return;
    if (p->pages->config.has_mailbox)
        page_gather(p, NULL, &mails, 1, then);
    else
        page_show(p, "not-found", TEXT_PAGE_NOT_FOUND_TITLE, 404);
}

static bool write_failure(struct page *p)
{
    return page_write(p, "failure", TEXT_PAGE_FAILURE_TITLE, 503);
}

static json_t *mails_of(const struct page *p)
{
    return json_object_get(json_object_get(p->values, "mailbox"), "items");
}

/* The mail that the path names; NULL: it is not there. */
static json_t *find_mail(const struct page *p)
{
    json_t *mail;
    size_t i;
    int64_t id;
    if (str_to_i64(p->rq->params[0], 1, INT64_MAX, &id))
        return NULL;
    json_array_foreach(mails_of(p), i, mail) if (json_integer_value(json_object_get(mail, "id")) == id) return mail;
    return NULL;
}

/* Up to the next space; a sentence's full stop behind it is not part of it. */
static size_t url_len(struct str text)
{
    size_t len = 0;
    while (len < text.len && (unsigned char)text.at[len] > ' ' && !strchr("<>\"", text.at[len]))
        len++;
    while (len && strchr(".,;:!?)", text.at[len - 1]))
        len--;
    return len;
}

/* The text part with its addresses as links. */
static void add_linked(struct buf *out, struct str text)
{
    while (text.len) {
        const char *found = memmem(text.at, text.len, "http", 4);
        size_t before = found ? (size_t)(found - text.at) : text.len;
        html_add_text(out, (struct str){text.at, before});
        text = (struct str){text.at + before, text.len - before};
        bool is_url = str_starts(text, STR("https://")) || str_starts(text, STR("http://"));
        struct str url = {text.at, is_url ? url_len(text) : text.len < 4 ? text.len : 4};
        if (is_url)
            buf_addz(out, "<a href=\"");
        if (is_url)
            html_add_text(out, url);
        if (is_url)
            buf_addz(out, "\">");
        html_add_text(out, url);
        if (is_url)
            buf_addz(out, "</a>");
        text = (struct str){text.at + url.len, text.len - url.len};
    }
}

static bool write_list(struct page *p)
{
    if (p->rq->reply.status != 200)
        return write_failure(p);
    page_set(p, "count", json_integer((json_int_t)json_array_size(mails_of(p))));
    return page_write(p, "mailbox", TEXT_MAILBOX_TITLE, 200);
}

static bool write_mail(struct page *p)
{
    if (p->rq->reply.status != 200)
        return write_failure(p);
    json_t *mail = find_mail(p);
    if (!mail)
        return page_write(p, "mailbox-gone", TEXT_MAILBOX_GONE_TITLE, 404);
    AUTO(buf) struct buf text = buf_new(TEXT_MAX);
    add_linked(&text, str_of(json_string_value(json_object_get(mail, "text"))));
    page_set(p, "mail", json_incref(mail));
    page_set_text(p, "text", buf_str(&text));
    return page_write(p, "mailbox-mail", TEXT_MAILBOX_TITLE, 200);
}

static bool write_html(struct page *p)
{
    if (p->rq->reply.status != 200)
        return write_failure(p);
    const char *html = json_string_value(json_object_get(find_mail(p), "html"));
    struct str copy = html ? arena_copy(p->rq->arena, str_of(html)) : (struct str){NULL, 0};
    if (!copy.at)
        return page_write(p, "mailbox-gone", TEXT_MAILBOX_GONE_TITLE, 404);
    return page_write_foreign(p, copy, foreign_policy);
}

static void list_handle(struct request *rq)
{
    read_mails(rq, write_list);
}

static void mail_handle(struct request *rq)
{
    read_mails(rq, write_mail);
}

static void html_handle(struct request *rq)
{
    read_mails(rq, write_html);
}

const struct route mailbox_routes[] = {
    {.method = METHOD_GET, .path = "/mailbox", .handle = list_handle},
    {.method = METHOD_GET, .path = "/mailbox/{id}", .handle = mail_handle},
    {.method = METHOD_GET, .path = "/mailbox/{id}/html", .handle = html_handle},
    {0},
};
