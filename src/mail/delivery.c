/* One mail on its way: whose turn it is, what became of each try, and when the one who waits is answered. */
#include <stdlib.h>

#include "base/digest.h"
#include "base/log.h"
#include "base/metrics.h"
#include "mail/inside.h"

#define TRIES_MAX 3 /* a provider */
#define COMPOSE_NS (10 * NS_PER_S)
#define LEASE_LOOK_NS (NS_PER_S / 4)

METRIC_COUNTER(tries, "reclaim_mail_tries_total", "Tries to hand a mail to a provider.", "provider", "outcome");
METRIC_HISTOGRAM(try_seconds, "reclaim_mail_try_seconds", "Time a provider took for a try.", metric_seconds,
                 "provider");
METRIC_COUNTER(mails, "reclaim_mails_total", "Mails, by what became of them.", "outcome");

struct delivery *delivery_new(struct post *post)
{
    struct delivery *d = calloc(1, sizeof *d);
    if (d)
        d->post = post;
    return d;
}

static void give(struct delivery *d, enum mail_verdict verdict)
{
    struct mail_answer *answer = d->answer;
    d->answer = NULL;
    if (answer)
        d->regret = answer->give(answer, verdict);
}

/* What was given stands. */
static void keep(struct delivery *d)
{
    struct mail_regret *regret = d->regret;
    d->regret = NULL;
    if (regret)
        regret->keep(regret);
}

static bool take_back(struct delivery *d)
{
    struct mail_regret *regret = d->regret;
    d->regret = NULL;
    return regret && regret->take_back(regret);
}

void delivery_forget(void *handed)
{
    struct delivery *d = handed;
    give(d, MAIL_GOES_ON); /* the item was never begun here; someone will */
    keep(d);
    buf_free(&d->body);
    secret_wipe(d, sizeof *d);
    free(d);
}

struct provider *delivery_provider(struct delivery *d)
{
    return &d->post->providers[d->at];
}

static void finish(struct delivery *d, enum work_outcome outcome, const char *what, const char *reason)
{
    struct engine *engine = d->item->engine;
    work_cancel(engine, &d->due);
    work_cancel(engine, &d->next);
    give(d, MAIL_GOES_ON);
    keep(d);
    counter_add(&mails, 1, what);
    secret_wipe(&d->mail, sizeof d->mail);
    work_end(d->item, outcome, reason);
}

/* While the answer is open, or can be regretted, each provider has one try; afterwards each has three, this one first. */
static bool choose(struct delivery *d)
{
    struct post *post = d->post;
    int most = d->answer || d->regret ? 1 : TRIES_MAX;
    for (size_t i = 0; i < post->count; i++) {
        size_t at = (d->at + i) % post->count;
        if (d->courses[at].final || d->courses[at].tries >= most)
            continue;
        d->at = at;
        return true;
    }
    return false;
}

/* When this provider may be tried: 1 s after its first failure, 2 s after its second. */
static int64_t try_from_ns(const struct delivery *d)
{
    const struct course *c = &d->courses[d->at];
    return c->tries ? c->failed_ns + (d->post->pause_ns << (c->tries - 1)) : 0;
}

static void attempt(struct delivery *d)
{
    enum work_lease hold = work_lease(d->item, d->post->try_ns);
    if (hold == WORK_LOST) {
        finish(d, WORK_DROPPED, "lost", NULL);
        return;
    }
    if (hold == WORK_WAIT) {
        work_at(d->item->engine, &d->next, clock_ns() + LEASE_LOOK_NS);
        return;
    }
    d->courses[d->at].tries++;
    d->began_ns = clock_ns();
    d->phase = DELIVERY_TRYING;
    enum err e = delivery_provider(d)->begin(d);
    if (e)
        delivery_tried(d, TRY_AGAIN, 0, e);
}

static void proceed(struct delivery *d);

static void end_untaken(struct delivery *d)
{
    if (d->answer) {
        give(d, MAIL_REFUSED);
        finish(d, WORK_DONE, "refused", NULL);
    } else if (d->regret) {
        if (take_back(d))
            finish(d, WORK_DONE, "refused", NULL);
        else
            proceed(d); /* the success has left: there are more tries */
    } else {
        finish(d, WORK_DEAD, "undeliverable", "no provider took the mail");
    }
}

/* With success; when that leaves, it stands. */
static void let_answer_go(struct delivery *d)
{
    give(d, MAIL_GOES_ON);
    if (d->regret)
        work_at(d->item->engine, &d->due, d->regret->until_ns);
}

static void proceed(struct delivery *d)
{
    int64_t now_ns = clock_ns();
    if (d->answer && now_ns >= d->answer->due_ns)
        let_answer_go(d);
    if (d->regret && now_ns >= d->regret->until_ns)
        keep(d);
    if (d->mail.expires_us && clock_wall_us() >= d->mail.expires_us)
        finish(d, WORK_DONE, "expired", NULL);
    else if (d->abandoned)
        finish(d, WORK_RETURNED, "returned", NULL);
    else if (!address_is_sound(str_of(d->mail.to)) || !choose(d))
        end_untaken(d);
    else if (try_from_ns(d) > now_ns)
        work_at(d->item->engine, &d->next, try_from_ns(d));
    else
        attempt(d);
}

static void log_failure(struct delivery *d, enum try_result result, int status, enum err err)
{
    log_correlate(d->mail.reference);
    log_warn("mail try failed", F_STR("provider", delivery_provider(d)->name), F_INT("status", status),
             F_STR("error", err ? err_name(err) : "refused"), F_INT("try", d->courses[d->at].tries),
             F_STR("again", result == TRY_AGAIN ? "yes" : "no"));
    log_correlate(NULL);
}

void delivery_tried(struct delivery *d, enum try_result result, int status, enum err err)
{
    static const char *const names[] = {"delivered", "again", "refused"};
    const char *provider = delivery_provider(d)->name;
    struct course *c = &d->courses[d->at];
    d->phase = DELIVERY_WAITING;
    counter_add(&tries, 1, provider, names[result]);
    histogram_observe(&try_seconds, (double)(clock_ns() - d->began_ns) / (double)NS_PER_S, provider);
    if (result == TRY_DELIVERED) {
        give(d, MAIL_DELIVERED);
        finish(d, WORK_DONE, "delivered", NULL);
        return;
    }
    log_failure(d, result, status, err);
    c->failed_ns = clock_ns();
    c->final = result == TRY_FINAL;
    proceed(d);
}

static void answer_is_due(struct work_timer *timer)
{
    struct delivery *d = OWNER_OF(timer, struct delivery, due);
    if (d->answer)
        let_answer_go(d);
    else
        keep(d);
}

static void next_is_due(struct work_timer *timer)
{
    proceed(OWNER_OF(timer, struct delivery, next));
}

/* Items taken over: who gets the mail, and what does it say? */

static enum err compose(struct job *job, struct pg *pg)
{
    struct delivery *d = OWNER_OF(job, struct delivery, job);
    struct why why;
    AUTO(json) json_t *payload = json_read_object(d->item->payload, &why);
    if (!payload || !d->post->compose)
        return ERR_INPUT;
    return d->post->compose(d->post->compose_context, pg, payload, job->deadline_ns, &d->mail);
}

static void composed(struct job *job, enum err e)
{
    struct delivery *d = OWNER_OF(job, struct delivery, job);
    d->err = e;
    work_post(d->item->engine, &d->note);
}

static void go_on_composed(struct work_note *note)
{
    struct delivery *d = OWNER_OF(note, struct delivery, note);
    d->phase = DELIVERY_WAITING;
    if (!d->err)
        proceed(d);
    else if (d->err == ERR_MISSING)
        finish(d, WORK_DONE, "unneeded", NULL);
    else if (d->err == ERR_INPUT)
        finish(d, WORK_DEAD, "undeliverable", "the payload makes no mail");
    else if (d->abandoned)
        finish(d, WORK_RETURNED, "returned", NULL);
    else
        finish(d, WORK_AGAIN, "postponed", "the database did not tell the address");
}

static void take_over(struct work_item *item)
{
    struct delivery *d = delivery_new(item->kind->context);
    if (!d) {
        work_end(item, WORK_AGAIN, "no memory");
        return;
    }
    item->handed = d;
    d->item = item;
    d->phase = DELIVERY_COMPOSING;
    d->note.run = go_on_composed;
    d->next.due = next_is_due;
    d->job = (struct job){.run = compose, .done = composed, .deadline_ns = clock_ns() + COMPOSE_NS};
    enum err e = pool_submit(work_pool(item->engine), &d->job);
    if (e) {
        d->err = e;
        go_on_composed(&d->note);
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
    d->due.due = answer_is_due;
    d->next.due = next_is_due;
    if (d->answer)
        work_at(item->engine, &d->due, d->answer->due_ns);
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
