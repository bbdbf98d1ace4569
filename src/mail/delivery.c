/* The delivery of one mail: which provider is tried next, the result of each try, and when the waiting request is answered. */
#include <stdlib.h>

#include "base/backoff.h"
#include "base/digest.h"
#include "base/log.h"
#include "base/metrics.h"
#include "mail/inside.h"

#define TRIES_MAX 3 /* a provider */
#define COMPOSE_NS (10 * NS_PER_S)
#define LEASE_POLL_NS (NS_PER_S / 4)

METRIC_COUNTER(tries, "reclaim_mail_tries_total", "Tries to hand a mail to a provider.", "provider", "outcome");
METRIC_HISTOGRAM(try_seconds, "reclaim_mail_try_seconds", "Time a provider took for a try.", metric_seconds,
                 "provider");
METRIC_COUNTER(mails, "reclaim_mails_total", "Mails, by outcome.", "outcome");

struct delivery *delivery_new(struct post *post)
{
    struct delivery *d = calloc(1, sizeof *d);
    if (d)
        d->post = post;
    return d;
}

/* Reports to the waiting request, if it still waits. */
static void report(struct delivery *d, enum mail_result result)
{
    struct mail_waiter *waiter = d->waiter;
    d->waiter = NULL;
    if (waiter)
        d->revocable = waiter->report(waiter, result);
}

/* The success that was answered stays. */
static void keep(struct delivery *d)
{
    struct mail_revocable *success = d->revocable;
    d->revocable = NULL;
    if (success)
        success->keep(success);
}

static bool revoke(struct delivery *d)
{
    struct mail_revocable *success = d->revocable;
    d->revocable = NULL;
    return success && success->revoke(success);
}

void delivery_forget(void *handed)
{
    struct delivery *d = handed;
    report(d, MAIL_PENDING); /* never begun here; another instance takes the item over */
    keep(d);
    buf_free(&d->body);
    mail_free(&d->mail);
    secret_wipe(d, sizeof *d);
    free(d);
}

struct provider *delivery_provider(struct delivery *d)
{
    return &d->post->providers[d->at];
}

static void fail(struct delivery *d, const char *reason);

static void finish(struct delivery *d, enum work_outcome outcome, const char *what, const char *reason)
{
    struct engine *engine = d->item->engine;
    if (outcome == WORK_AGAIN && d->item->tries >= d->item->kind->tries_max) {
        fail(d, reason);
        return;
    }
    work_cancel(engine, &d->due);
    work_cancel(engine, &d->next);
    report(d, MAIL_PENDING);
    keep(d);
    counter_add(&mails, 1, what);
    mail_free(&d->mail);
    work_end(d->item, outcome, reason);
}

static void finish_with(struct delivery *d, const char *result, const char *detail, const char *what)
{
    d->item->result = result;
    d->item->result_detail = detail;
    finish(d, WORK_DONE, what, NULL);
}

/* No provider will get the mail. A code that nobody got is not kept as a dead item: who wants one asks again. */
static void fail(struct delivery *d, const char *reason)
{
    struct work_item *item = d->item;
    struct str request = {NULL, 0};
    void *context;
    AUTO(json) json_t *payload = json_read_object(item->payload, NULL);
    const struct mail_template *template = mail_template_of(d->post, payload, &context);
    bool kept = !template || !template->passes;
    item->result = "failed";
    item->result_detail = reason;
    if (!kept) {
        (void)!json_get_str(payload, "correlation_id", &request);
        log_correlate(request.at);
        log_warn("mail failed for good", F_INT("item", item->id), F_INT("tries", item->tries), F_STR("reason", reason));
        log_correlate(NULL);
    }
    finish(d, kept ? WORK_DEAD : WORK_DONE, "undeliverable", reason);
}

/* While the request waits, or its answer can be replaced, each provider has one try; afterwards each has three, beginning
 * with this one. */
static bool choose_provider(struct delivery *d)
{
    struct post *post = d->post;
    int most = d->waiter || d->revocable ? 1 : TRIES_MAX;
    for (size_t i = 0; i < post->count; i++) {
        size_t at = (d->at + i) % post->count;
        if (d->tries[at].final || d->tries[at].count >= most)
            continue;
        d->at = at;
        return true;
    }
    return false;
}

/* The earliest time of this provider's next try: 1 s after its first failure, 2 s after its second. */
static int64_t try_from_ns(const struct delivery *d)
{
    const struct provider_tries *t = &d->tries[d->at];
    return t->count ? t->failed_ns + backoff_ns((struct backoff){d->post->pause_ns, INT64_MAX}, t->count) : 0;
}

static void attempt(struct delivery *d)
{
    enum work_lease lease = work_lease(d->item, d->post->try_ns);
    if (lease == WORK_LOST) {
        finish(d, WORK_DROPPED, "lost", NULL);
        return;
    }
    if (lease == WORK_WAIT) {
        work_at(d->item->engine, &d->next, clock_ns() + LEASE_POLL_NS);
        return;
    }
    d->tries[d->at].count++;
    d->began_ns = clock_ns();
    d->phase = DELIVERY_TRYING;
    enum err e = delivery_provider(d)->begin(d);
    if (e)
        delivery_tried(d, TRY_AGAIN, 0, e);
}

static void proceed(struct delivery *d);

static void end_undelivered(struct delivery *d)
{
    static const char refused_early[] = "every provider refused it before the answer";
    if (d->waiter) {
        report(d, MAIL_REFUSED);
        finish_with(d, "failed", refused_early, "refused");
    } else if (d->revocable) {
        if (revoke(d))
            finish_with(d, "failed", refused_early, "refused");
        else
            proceed(d); /* the success has been sent: there are more tries */
    } else {
        fail(d, "no provider took the mail");
    }
}

/* The request is answered with success; from that answer's release on it cannot be replaced. */
static void report_pending(struct delivery *d)
{
    report(d, MAIL_PENDING);
    if (d->revocable)
        work_at(d->item->engine, &d->due, d->revocable->until_ns);
}

static void proceed(struct delivery *d)
{
    int64_t now_ns = clock_ns();
    if (d->waiter && now_ns >= d->waiter->due_ns)
        report_pending(d);
    if (d->revocable && now_ns >= d->revocable->until_ns)
        keep(d);
    if (d->mail.expires_us && clock_installation_us() >= d->mail.expires_us)
        finish_with(d, "expired", NULL, "expired");
    else if (d->abandoned)
        finish(d, WORK_RETURNED, "returned", NULL);
    else if (!address_is_sound(str_of(d->mail.to)) || !choose_provider(d))
        end_undelivered(d);
    else if (try_from_ns(d) > now_ns)
        work_at(d->item->engine, &d->next, try_from_ns(d));
    else
        attempt(d);
}

static void log_failure(struct delivery *d, enum try_result result, int status, enum err err)
{
    log_correlate(d->mail.reference);
    log_warn("mail try failed", F_STR("provider", delivery_provider(d)->name), F_INT("status", status),
             F_STR("error", err ? err_name(err) : "refused"), F_INT("try", d->tries[d->at].count),
             F_STR("again", result == TRY_AGAIN ? "yes" : "no"));
    log_correlate(NULL);
}

void delivery_tried(struct delivery *d, enum try_result result, int status, enum err err)
{
    static const char *const names[] = {"delivered", "again", "refused"};
    const char *provider = delivery_provider(d)->name;
    struct provider_tries *t = &d->tries[d->at];
    d->phase = DELIVERY_WAITING;
    counter_add(&tries, 1, provider, names[result]);
    histogram_observe(&try_seconds, (double)(clock_ns() - d->began_ns) / (double)NS_PER_S, provider);
    if (result == TRY_DELIVERED) {
        report(d, MAIL_DELIVERED);
        finish_with(d, "sent", provider, "delivered");
        return;
    }
    log_failure(d, result, status, err);
    t->failed_ns = clock_ns();
    t->final = result == TRY_FINAL;
    proceed(d);
}

static void result_is_due(struct work_timer *timer)
{
    struct delivery *d = OWNER_OF(timer, struct delivery, due);
    if (d->waiter)
        report_pending(d);
    else
        keep(d);
}

static void next_is_due(struct work_timer *timer)
{
    proceed(OWNER_OF(timer, struct delivery, next));
}

/* Items taken over: a worker composes the mail, then delivery goes on here. */

static enum err compose(struct job *job, struct pg *pg)
{
    struct delivery *d = OWNER_OF(job, struct delivery, job);
    AUTO(json) json_t *payload = json_read_object(d->item->payload, NULL);
    if (!payload)
        return ERR_INPUT;
    mail_free(&d->mail); /* of a run that ended in a conflict */
    return mail_compose(d->post, pg, payload, job->deadline_ns, &d->mail);
}

static void composed(struct job *job, enum err e)
{
    struct delivery *d = OWNER_OF(job, struct delivery, job);
    d->err = e;
    work_post(d->item->engine, &d->note);
}

static void deliver_composed(struct work_note *note)
{
    struct delivery *d = OWNER_OF(note, struct delivery, note);
    d->phase = DELIVERY_WAITING;
    if (!d->err)
        proceed(d);
    else if (d->err == ERR_MISSING)
        finish_with(d, "unneeded", NULL, "unneeded");
    else if (d->err == ERR_INPUT)
        fail(d, "no mail can be composed from the payload");
    else if (d->abandoned)
        finish(d, WORK_RETURNED, "returned", NULL);
    else
        finish(d, WORK_AGAIN, "postponed", "the address could not be read from the database");
}

/* NULL after the item was ended, without memory. */
static struct delivery *adopt(struct work_item *item)
{
    struct delivery *d = delivery_new(item->kind->context);
    if (!d) {
        work_end(item, WORK_AGAIN, "no memory");
        return NULL;
    }
    item->handed = d;
    d->item = item;
    return d;
}

void delivery_give_up(struct work_item *item)
{
    struct delivery *d = item->handed ? item->handed : adopt(item);
    if (d)
        fail(d, "the last run was cut off");
}

static void take_over(struct work_item *item)
{
    struct delivery *d = adopt(item);
    if (!d)
        return;
    d->phase = DELIVERY_COMPOSING;
    d->note.run = deliver_composed;
    d->next.due = next_is_due;
    d->job = (struct job){.run = compose, .done = composed, .deadline_ns = clock_ns() + COMPOSE_NS};
    enum err e = pool_submit(work_pool(item->engine), &d->job);
    if (e) {
        d->err = e;
        deliver_composed(&d->note);
    }
}

void delivery_start(struct work_item *item)
{
    struct delivery *d = item->handed;
    if (!d) {
        take_over(item);
        return;
    }
    d->item = item;
    d->due.due = result_is_due;
    d->next.due = next_is_due;
    if (d->waiter)
        work_at(item->engine, &d->due, d->waiter->due_ns);
    proceed(d);
}

void delivery_abandon(struct work_item *item)
{
    struct delivery *d = item->handed;
    d->abandoned = true;
    bool busy = d->phase == DELIVERY_COMPOSING || (d->phase == DELIVERY_TRYING && !delivery_provider(d)->cancel(d));
    if (!busy)
        finish(d, WORK_RETURNED, "returned", NULL);
}
