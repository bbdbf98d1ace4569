/* A mail from the sentences and the template of its kind, and from a work item's payload. */
#include <stdio.h>
#include <string.h>

#include "base/digest.h"
#include "mail/design.h"
#include "mail/inside.h"

/* Sentences come from files: a control character in one could end a header. A subject too long ends with a whole character. */
static void set_subject(struct mail *mail, struct str text)
{
    size_t len = 0, next;
    while (len < text.len && (next = str_utf8_len((struct str){text.at + len, text.len - len})) &&
           len + next <= MAIL_SUBJECT_MAX) {
        for (size_t i = 0; i < next; i++)
            mail->subject[len + i] = (unsigned char)text.at[len + i] < ' ' ? ' ' : text.at[len + i];
        len += next;
    }
    mail->subject[len] = 0;
}

static void set_text(json_t *values, const char *name, struct str text)
{
    json_object_set_new(values, name, text.at ? json_stringn(text.at, text.len) : json_null());
}

static void set_sentence(const struct reader *reader, json_t *values, const char *name, enum text id)
{
    AUTO(buf) struct buf plain = buf_new(MAIL_BYTES_MAX);
    text_fill_sentence(reader, id, values, &plain);
    set_text(values, name, buf_str(&plain));
}

/* As HTML, for {{raw name}}. */
static json_t *marked_sentence(const struct reader *reader, const json_t *values, enum text id)
{
    AUTO(buf) struct buf html = buf_new(MAIL_BYTES_MAX);
    template_fill_sentence(reader, id, values, &html);
    struct str text = buf_str(&html);
    return text.at ? json_stringn(text.at, text.len) : json_string("");
}

static void set_url(const struct mail_design *design, const struct mail_words *words, const char *code, json_t *values)
{
    if (!design->public_url || !words->page)
        return;
    AUTO(buf) struct buf url = buf_new(MAIL_BYTES_MAX);
    buf_addf(&url, "%s%s%s%s", design->public_url, words->page, code ? "#" : "", code ? code : "");
    set_text(values, "url", buf_str(&url));
}

static void set_values(const struct mail_design *design, const struct reader *reader, const struct mail_words *words,
                       const struct mail *mail, const char *code, json_t *values)
{
    set_text(values, "lang", str_of(language_tag(reader->language)));
    set_text(values, "brand", str_of(design->brand_name));
    set_text(values, "accent", str_of(design->colors.accent));
    set_text(values, "on_accent", str_of(design->colors.on_accent));
    set_text(values, "code", str_of(code));
    set_text(values, "subject", str_of(mail->subject));
    set_url(design, words, code, values);
    set_sentence(reader, values, "heading", words->heading);
    if (json_object_get(values, "url"))
        set_sentence(reader, values, "button", words->button);
    json_t *paragraphs = json_array();
    for (size_t i = 0; i < words->count; i++)
        json_array_append_new(paragraphs, marked_sentence(reader, values, words->paragraphs[i]));
    json_object_set_new(values, "paragraphs", paragraphs);
    set_text(values, "reference", str_of(mail->reference));
}

static void add_line(struct buf *out, const struct reader *reader, enum text id, const json_t *values)
{
    text_fill_sentence(reader, id, values, out);
    buf_addz(out, "\r\n\r\n");
}

static void write_text(struct mail *mail, const struct reader *reader, const struct mail_words *words, const char *code,
                       const json_t *values)
{
    struct buf *out = &mail->text;
    bool links = json_object_get(values, "url") != NULL;
    if (code) {
        add_line(out, reader, words->heading, values);
        buf_addf(out, "    %s\r\n\r\n", code);
    }
    if (code && links)
        add_line(out, reader, words->open, values);
    for (size_t i = 0; i < words->count; i++)
        add_line(out, reader, words->paragraphs[i], values);
    if (!code && links)
        add_line(out, reader, words->open, values);
    text_fill_sentence(reader, TEXT_MAIL_REFERENCE, values, out);
    buf_addz(out, "\r\n");
}

/* Values and what was made of them hold codes. */
static void wipe_texts(json_t *value)
{
    const char *key;
    json_t *one;
    size_t i;
    if (json_is_string(value))
        secret_wipe((char *)(uintptr_t)json_string_value(value), json_string_length(value));
    json_object_foreach(value, key, one) wipe_texts(one);
    json_array_foreach(value, i, one) wipe_texts(one);
}

void mail_write(struct mail *mail, const struct mail_design *design, enum language language,
                const struct mail_words *words, const char *reference, const char *code, json_t *values)
{
    const struct reader reader = {.sentences = design->sentences, .language = language};
    AUTO(json) json_t *all = values ? values : json_object();
    *mail = (struct mail){.text = buf_new(MAIL_BYTES_MAX), .html = buf_new(MAIL_BYTES_MAX)};
    (void)snprintf(mail->reference, sizeof mail->reference, "%s", reference);
    if (!all) { /* what is not whole is not sent */
        mail->text.failed = mail->html.failed = ERR_MEMORY;
        return;
    }
    AUTO(buf) struct buf subject = buf_new(MAIL_BYTES_MAX);
    text_fill_sentence(&reader, words->subject, all, &subject);
    set_subject(mail, buf_str(&subject));
    set_values(design, &reader, words, mail, code, all);
    write_text(mail, &reader, words, code, all);
    json_object_set_new(all, "reference", marked_sentence(&reader, all, TEXT_MAIL_REFERENCE));
    template_fill(mail_design_template(design, words->template), &reader, all, &mail->html);
    wipe_texts(all);
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
