/* What the mails of all features have in common: plain text and HTML with the same content, and the reference below. */
#include <string.h>

#include "base/digest.h"
#include "text/html.h"
#include "mail/inside.h"

void mail_begin(struct mail *mail, const char *subject)
{
    *mail = (struct mail){.subject = subject, .text = buf_new(MAIL_BYTES_MAX), .html = buf_new(MAIL_BYTES_MAX)};
    buf_addf(&mail->html,
             "<!doctype html>\r\n<html lang=\"en\">\r\n<head><meta charset=\"utf-8\"><title>%s</title></head>\r\n"
             "<body style=\"font-family:sans-serif;font-size:16px;line-height:1.5;color:#222;background:#fff\">\r\n",
             subject);
}

void mail_add_escaped(struct mail *mail, const char *text)
{
    html_add_text(&mail->html, str_of(text));
}

void mail_add_paragraph(struct mail *mail, const char *text)
{
    buf_addf(&mail->text, "%s\r\n\r\n", text);
    buf_addz(&mail->html, "<p>");
    mail_add_escaped(mail, text);
    buf_addz(&mail->html, "</p>\r\n");
}

void mail_end(struct mail *mail)
{
    buf_addf(&mail->text, "Reference: %s\r\n", mail->reference);
    buf_addz(&mail->html, "<p style=\"color:#666;font-size:13px\">Reference: ");
    mail_add_escaped(mail, mail->reference);
    buf_addz(&mail->html, "</p>\r\n</body>\r\n</html>\r\n");
}

static void wipe(struct buf *b)
{
    if (b->at)
        secret_wipe(b->at, b->len);
    buf_free(b);
}

void mail_free(struct mail *mail)
{
    wipe(&mail->text);
    wipe(&mail->html);
    secret_wipe(mail, sizeof *mail);
}

void mail_cleanup(struct mail *mail)
{
    mail_free(mail);
}

const struct mail_template *mail_template_of(const struct post *post, const json_t *payload, void **ret_context)
{
    struct str name;
    if (!payload || json_get_str(payload, "template", &name))
        return NULL;
    for (size_t i = 0; i < COUNT_OF(post->features); i++) {
        const struct mail_templates *feature = &post->features[i];
        for (size_t k = 0; k < feature->count; k++) {
            if (!str_eq(name, str_of(feature->at[k].name)))
                continue;
            *ret_context = feature->context;
            return &feature->at[k];
        }
    }
    return NULL;
}

enum err mail_compose(const struct post *post, struct pg *pg, const json_t *payload, int64_t deadline_ns,
                      struct mail *ret)
{
    void *context = NULL;
    const struct mail_template *template = mail_template_of(post, payload, &context);
    return template ? template->compose(context, pg, payload, deadline_ns, ret) : ERR_INPUT;
}
