#include "customers/freeze.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "customers/mails.h"
#include "customers/statements.h"
#include "gate/frozen_customers.h"
#include "pg/tx.h"

METRIC_COUNTER(changes, "reclaim_customer_changes_total", "Changes asked for, by outcome.", "action", "outcome");
METRIC_HISTOGRAM(to_billing, "reclaim_freeze_billing_seconds",
                 "From a freeze's first write until its commit, which freezes billing.", metric_seconds);

int64_t customer_change_known_ns(int64_t committed_ns)
{
    return committed_ns + FROZEN_LEASE_NS;
}

struct pg_call customer_log(const char *customer_id, const char *action, const struct actor *actor, const char *outcome)
{
    return (struct pg_call){.ask = &customer_write_log,
                            .args = {customer_id ? pg_text(customer_id) : pg_null(), pg_text(action),
                                     pg_text(actor->kind), actor->id ? pg_text(actor->id) : pg_null(), pg_text(outcome),
                                     actor->correlation_id ? pg_text(actor->correlation_id) : pg_null()}};
}

/* Work items of the transaction: written in it, started after the commit. */
struct follow_up {
    struct work_item *mail, *hangup;
    size_t mail_at, hangup_at; /* which of the writes inserts each */
    char mail_payload[CUSTOMER_MAIL_PAYLOAD_MAX], hangup_payload[128];
};

static void follow_up_cleanup(struct follow_up *f)
{
    work_item_cleanup(&f->mail);
    work_item_cleanup(&f->hangup);
}

struct change {
    const struct change_needs *needs;
    const char *customer_id;
    enum customer_event event;
    bool has_address;
    int64_t writing_ns;
    struct pg_call writes[PG_CALLS_MAX];
    size_t count;
    struct follow_up then;
};

static void add(struct change *c, struct pg_call call)
{
    c->writes[c->count++] = call;
}

/* Recipient and text are read when it is sent. */
static enum err promise_mail(struct change *c)
{
    const struct change_needs *needs = c->needs;
    const char *template = customer_mail_template(c->event);
    if (!c->has_address || !template || (needs->post && !post_has_provider(needs->post)))
        return OK;
    customer_mail_payload(template, c->customer_id, c->then.mail_payload);
    c->then.mail_at = c->count++;
    return work_owe(needs->engine, needs->post ? post_kind(needs->post) : &mail_for_others, c->then.mail_payload,
                    &c->writes[c->then.mail_at], &c->then.mail);
}

static enum err promise_hangup(struct change *c)
{
    const struct change_needs *needs = c->needs;
    if (c->event != CUSTOMER_FREEZES || !needs->hangup)
        return OK;
    snprintf(c->then.hangup_payload, sizeof c->then.hangup_payload,
             "{\"customer_id\":\"%s\",\"reason\":\"account_frozen\"}", c->customer_id);
    c->then.hangup_at = c->count++;
    return work_owe(needs->engine, needs->hangup, c->then.hangup_payload, &c->writes[c->then.hangup_at],
                    &c->then.hangup);
}

static enum err write_all(struct change *c, const struct actor *actor, struct tx *tx)
{
    bool freeze = c->event == CUSTOMER_FREEZES;
    add(c, (struct pg_call){.ask = freeze ? &customer_freeze : &customer_recover, .args = {pg_text(c->customer_id)}});
    add(c, (struct pg_call){.ask = freeze ? &customer_set_billing_hold : &customer_clear_billing_hold,
                            .args = {pg_text(c->customer_id)}});
    add(c,
        (struct pg_call){.ask = &customer_publish, .args = {pg_text(c->customer_id), pg_text(event_type(c->event))}});
    add(c, customer_log(c->customer_id, event_action(c->event), actor, "done"));
    enum err e = promise_mail(c);
    if (e || (e = promise_hangup(c)))
        return e;
    return tx_commit(tx, c->writes, c->count);
}

static const char *outcome_name(const struct changed *changed)
{
    static const char *const names[] = {[CHANGE_DONE] = "done",
                                        [CHANGE_UNCHANGED] = "unchanged",
                                        [CHANGE_UNKNOWN] = "unknown",
                                        [CHANGE_REFUSED] = "refused"};
    return names[changed->outcome];
}

/* Nothing changes; the request is logged all the same. */
static enum err log_only(struct tx *tx, const struct change *c, const struct actor *actor,
                         const struct changed *changed)
{
    struct pg_call row = customer_log(c->customer_id, event_action(c->event), actor, outcome_name(changed));
    return tx_commit(tx, &row, 1);
}

static enum err decide_and_write(struct change *c, struct pg *pg, const struct actor *actor, int64_t deadline_ns,
                                 struct arena *arena, struct changed *ret)
{
    AUTO(tx) struct tx *tx = tx_begin(pg, deadline_ns);
    struct pg_call reads[] = {{.ask = &customer_take_turn, .args = {pg_text(c->customer_id)}},
                              {.ask = &customer_lock, .args = {pg_text(c->customer_id)}}};
    const struct pg_call *row = &reads[1];
    enum customer_state now;
    enum err e = tx_trip(tx, reads, COUNT_OF(reads));
    if (e)
        return e;
    if (row->rows == 0) {
        ret->outcome = CHANGE_UNKNOWN;
        return log_only(tx, c, actor, ret);
    }
    if ((e = state_parse(pg_get(row, 0, 0), &now)))
        return e;
    struct transition step = state_transition(now, c->event);
    if (step.kind != TRANSITION_CHANGES) {
        ret->outcome = step.kind == TRANSITION_NONE ? CHANGE_UNCHANGED : CHANGE_REFUSED;
        ret->object = arena_copy(arena, pg_get(row, 0, 1));
        return log_only(tx, c, actor, ret);
    }
    c->has_address = pg_get(row, 0, 2).len > 0;
    c->writing_ns = clock_ns();
    if ((e = write_all(c, actor, tx)))
        return e;
    ret->outcome = CHANGE_DONE;
    ret->object = arena_copy(arena, pg_get(&c->writes[0], 0, 0));
    return ret->object.at ? OK : ERR_MEMORY;
}

enum err customer_change(const struct change_needs *needs, struct pg *pg, const char *customer_id,
                         enum customer_event event, const struct actor *actor, int64_t deadline_ns, struct arena *arena,
                         struct changed *ret)
{
    struct change c = {.needs = needs, .customer_id = customer_id, .event = event};
    *ret = (struct changed){.outcome = CHANGE_UNKNOWN};
    enum err e = decide_and_write(&c, pg, actor, deadline_ns, arena, ret);
    ret->committed_ns = clock_ns();
    if (!e && ret->outcome == CHANGE_DONE && event == CUSTOMER_FREEZES)
        histogram_observe(&to_billing, (double)(ret->committed_ns - c.writing_ns) / 1e9);
    if (!e && c.then.mail)
        work_kick(&c.then.mail, &c.writes[c.then.mail_at]);
    if (!e && c.then.hangup)
        work_kick(&c.then.hangup, &c.writes[c.then.hangup_at]);
    follow_up_cleanup(&c.then);
    if (e != ERR_CONFLICT)
        counter_add(&changes, 1, event_action(event), e ? "failed" : outcome_name(ret));
    return e;
}
