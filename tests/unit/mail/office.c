#include "office.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "database.h"
#include "pg/tx.h"
#include "test_design.h"

#define SOON (clock_ns() + 60 * NS_PER_S)

struct mail office_mail(void)
{
    struct mail mail;
    static const struct mail_words words = {
        .template = "code", .subject = TEXT_MAIL_RECOVERY_SUBJECT, .heading = TEXT_MAIL_RECOVERY_OPENING};
    mail_write(&mail, test_design(false), LANGUAGE_EN, &words, REFERENCE, CODE, NULL);
    (void)snprintf(mail.to, sizeof mail.to, "%s", ADDRESS);
    mail.expires_us = clock_wall_us() + INT64_C(300) * 1000000;
    return mail;
}

static enum err compose(void *context, struct pg *pg, const json_t *payload, int64_t deadline_ns, struct mail *ret)
{
    (void)pg;
    (void)deadline_ns;
    struct str salt;
    if (json_get_str(payload, "salt", &salt) || !str_eq(salt, STR("00ff")))
        return ERR_INPUT;
    *ret = office_mail();
    return context ? (enum err)atomic_load((atomic_int *)context) : OK;
}

struct mail_settings office_settings(void)
{
    static const struct mail_template templates[] = {{.name = "cleanup-code", .compose = compose}};
    return (struct mail_settings){.from = "Reclaim <reclaim@example.com>",
                                  .features = {{templates, COUNT_OF(templates), NULL}},
                                  .try_ns = 10 * NS_PER_S,
                                  .pause_ns = 100 * NS_PER_MS};
}

struct office office_open(const struct mail_settings *settings, int64_t lease_ns)
{
    struct office o = {.pool = database_pool(6)};
    struct why why = {""};
    if (post_new(settings, &o.post, &why))
        fail_msg("no post: %s", why.text);
    const struct work_kind *kind = post_kind(o.post);
    struct work_config config = {
        .pool = o.pool, .kinds = &kind, .kind_count = 1, .lease_ns = lease_ns, .poll_ns = NS_PER_S / 20};
    o.engine = work_start(&config, &why);
    o.pg = pg_new(database_url(), PG_PREPARE_OFF);
    if (!o.engine || !o.pg || pg_connect(o.pg, SOON, &why))
        fail_msg("no office: %s", why.text);
    return o;
}

void office_close(struct office *o, int64_t limit_ns)
{
    work_stop(o->engine, clock_ns() + limit_ns);
    pool_stop(o->pool, SOON);
    work_free(o->engine);
    post_free(o->post);
    pg_free(o->pg);
}

static bool revoked(struct mail_revocable *success)
{
    struct waiting *w = OWNER_OF(success, struct waiting, revocable);
    atomic_fetch_add(&w->revoked, 1);
    return !w->released;
}

static void kept(struct mail_revocable *success)
{
    atomic_fetch_add(&OWNER_OF(success, struct waiting, revocable)->kept, 1);
}

static struct mail_revocable *reported(struct mail_waiter *waiter, enum mail_result result)
{
    struct waiting *w = OWNER_OF(waiter, struct waiting, waiter);
    atomic_store(&w->when_ns, clock_ns());
    atomic_store(&w->result, (int)result);
    w->revocable = (struct mail_revocable){w->revocable_until_ns, revoked, kept};
    atomic_fetch_add(&w->times, 1);
    return result == MAIL_PENDING && w->revocable_until_ns ? &w->revocable : NULL;
}

void office_send(struct office *o, struct mail *mail, struct waiting *w, int64_t due_ns)
{
    struct pg_call insert;
    struct tx *tx = tx_begin(o->pg, SOON);
    AUTO(work_item) struct work_item *item = mail_promise(o->post, o->engine, PAYLOAD, mail, &insert);
    assert_non_null(item);
    assert_int_equal(tx_commit(tx, &insert, 1), OK);
    if (w) {
        w->waiter = (struct mail_waiter){.due_ns = due_ns, .report = reported};
        atomic_store(&w->result, NO_RESULT);
        atomic_store(&w->times, 0);
    }
    work_inserted(item, &insert);
    mail_send(&item, w ? &w->waiter : NULL);
    assert_null(item);
}

int office_result(struct waiting *w)
{
    for (int64_t end_ns = SOON; atomic_load(&w->times) == 0;) {
        assert_true(clock_ns() < end_ns);
        (void)poll(NULL, 0, 2);
    }
    return atomic_load(&w->result);
}
