/* The providers in their order, and the hand-over of mails from flows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "mail/inside.h"

#define TRY_NS (10 * NS_PER_S)
#define PAUSE_NS NS_PER_S
#define MAIL_KIND "mail"

const struct work_kind mail_for_others = {.name = MAIL_KIND};

static char *copy_of(const char *before, const char *z)
{
    size_t size = strlen(before) + strlen(z) + 1;
    char *copy = malloc(size);
    if (copy)
        (void)snprintf(copy, size, "%s%s", before, z);
    return copy;
}

static void wipe_copy(char *copy)
{
    if (copy)
        secret_wipe(copy, strlen(copy));
    free(copy);
}

static bool has_control(const char *z)
{
    for (; *z; z++)
        if ((unsigned char)*z < ' ' || *z == 0x7f)
            return true;
    return false;
}

/* `key` is NULL for SMTP, whose URL has the credentials. */
static enum err add(struct post *post, void (*make)(struct provider *p), const char *url, const char *key,
                    struct why *why)
{
    struct provider *p = &post->providers[post->count];
    make(p);
    if (client_check_url(url, key ? CLIENT_HTTP : CLIENT_SMTP))
        return why_set(why, ERR_INPUT, "the URL of the mail provider %s cannot be used", p->name);
    if (key && (!*key || has_control(key)))
        return why_set(why, ERR_INPUT, "the key of the mail provider %s is empty or has control characters", p->name);
    post->count++;
    p->url = copy_of("", url);
    p->authorization = key ? copy_of("Authorization: Bearer ", key) : NULL;
    return p->url && (!key || p->authorization) ? OK : why_set(why, ERR_MEMORY, "no memory for the mail providers");
}

static enum err add_all(struct post *post, const struct mail_settings *s, struct why *why)
{
    enum err e = OK;
    if (s->resend_api_key)
        e = add(post, provider_resend, s->resend_url, s->resend_api_key, why);
    if (!e && s->sendgrid_api_key)
        e = add(post, provider_sendgrid, s->sendgrid_url, s->sendgrid_api_key, why);
    if (!e && s->smtp_url)
        e = add(post, provider_smtp, s->smtp_url, NULL, why);
    if (e)
        return e;
    if (post->count && !s->from)
        return why_set(why, ERR_INPUT, "a mail provider is set, but not the sender of its mails");
    if (s->from && mail_from_parse(str_of(s->from), &post->from))
        return why_set(why, ERR_INPUT, "the sender is not an address, or Name <address>");
    if (!post->count && s->mailbox)
        provider_mailbox(&post->providers[post->count++]);
    return OK;
}

enum err post_new(const struct mail_settings *s, struct post **ret, struct why *why)
{
    struct post *post = calloc(1, sizeof *post);
    if (!post)
        return why_set(why, ERR_MEMORY, "no memory for the mail providers");
    post->design = s->design;
    memcpy(post->features, s->features, sizeof post->features);
    post->try_ns = s->try_ns ? s->try_ns : TRY_NS;
    post->pause_ns = s->pause_ns ? s->pause_ns : PAUSE_NS;
    post->kind = (struct work_kind){.name = MAIL_KIND,
                                    .tries_max = 8,
                                    .pause_first_ns = 2 * NS_PER_S,
                                    .pause_most_ns = 30 * NS_PER_S,
                                    .context = post,
                                    .start = delivery_start,
                                    .abandon = delivery_abandon,
                                    .give_up = delivery_give_up,
                                    .forget = delivery_forget};
    enum err e = add_all(post, s, why);
    if (e)
        post_free(post);
    else
        *ret = post;
    return e;
}

void post_free(struct post *post)
{
    if (!post)
        return;
    for (size_t i = 0; i < post->count; i++) {
        wipe_copy(post->providers[i].url); /* SMTP's holds a password */
        wipe_copy(post->providers[i].authorization);
    }
    batch_free(post->mailbox);
    free(post);
}

const struct work_kind *post_kind(const struct post *post)
{
    return &post->kind;
}

const struct mail_design *post_design(const struct post *post)
{
    return post->design;
}

bool post_has_provider(const struct post *post)
{
    return post->count > 0;
}

struct work_item *mail_promise(struct post *post, struct engine *engine, const char *payload, struct mail *mail,
                               struct pg_call *ret_insert)
{
    struct delivery *d = delivery_new(post);
    struct work_item *item = d ? work_promise(engine, &post->kind, payload, ret_insert) : NULL;
    if (!item) {
        free(d);
        return NULL;
    }
    d->mail = *mail;
    *mail = (struct mail){0};
    item->handed = d;
    return item;
}

void mail_send(struct work_item **item, struct mail_waiter *waiter)
{
    struct delivery *d = (*item)->handed;
    d->waiter = waiter;
    work_kick(item);
}

enum err mail_prune(struct pg *pg, int64_t retention_ms, int64_t deadline_ns)
{
    return work_prune_dead(pg, &mail_for_others, retention_ms, deadline_ns);
}
