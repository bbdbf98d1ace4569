/* Freezing and recovering: one transaction that changes the customer with all that follows, or nothing. */
#include "customers/freeze.h"

#include <string.h>

#include "../base/unit.h"
#include "../work/database.h"
#include "base/clock.h"
#include "customers/expiry.h"

#define SOON (clock_ns() + 60 * NS_PER_S)
#define SOMEONE "a0000000-0000-4000-8000-000000000001"
#define OTHER "a0000000-0000-4000-8000-000000000002"
#define ACCOUNT "b0000000-0000-4000-8000-000000000001"

static const struct actor admin = {.kind = "admin"}, owner = {.kind = "owner"};

static struct pg *connected(void)
{
    struct pg *pg = pg_new(database_url(), PG_PREPARE_OFF);
    struct why why = {""};
    assert_int_equal(pg_connect(pg, SOON, &why), OK);
    return pg;
}

static enum err change_until(const char *id, enum customer_event event, const struct actor *actor, int64_t deadline_ns,
                             struct changed *ret)
{
    AUTO(pg) struct pg *pg = connected();
    AUTO(arena) struct arena *arena = arena_new(4096, 65536);
    enum err e = customer_change(pg, id, event, actor, "abuse", deadline_ns, arena, ret);
    if (!e && ret->outcome <= CHANGE_UNCHANGED)
        assert_non_null(strstr(ret->object.at, id)); /* it lives in the arena */
    ret->object = (struct str){NULL, 0};
    return e;
}

static int change_by(const struct actor *actor, const char *id, enum customer_event event)
{
    struct changed changed;
    assert_int_equal(change_until(id, event, actor, SOON, &changed), OK);
    return (int)changed.outcome;
}

static int change(const char *id, enum customer_event event)
{
    return change_by(&admin, id, event);
}

#define COUNT(what) database_number("SELECT count(*) FROM reclaim." what)

static void assert_events(int count, const char *newest)
{
    assert_int_equal(COUNT("event_outbox"), count);
    AUTO(pg) struct pg *pg = connected();
    const struct statement ask = {"newest",
                                  "SELECT o.type, o.sequence = c.version FROM reclaim.event_outbox o"
                                  " JOIN reclaim.customer_customers c ON c.id = o.customer_id"
                                  " ORDER BY position DESC LIMIT 1",
                                  0, "type:text current:bool"};
    struct pg_call call = {.ask = &ask};
    assert_int_equal(pg_ask(pg, &call, SOON), OK);
    assert_str(pg_get(&call, 0, 0), newest);
    assert_true(pg_get_bool(&call, 0, 1));
}

static void a_freeze_holds_billing_publishes_an_event_and_queues_the_work(void **state UNUSED)
{
    assert_int_equal(change(SOMEONE, CUSTOMER_FREEZES), CHANGE_DONE);
    assert_int_equal(COUNT("customer_customers WHERE status = 'frozen' AND tm_deletion_scheduled IS NOT NULL"), 1);
    assert_int_equal(COUNT("billing_accounts WHERE status = 'frozen' AND hold_reasons = '{account_frozen}'"), 1);
    assert_int_equal(COUNT("billing_freezes WHERE thawed_at IS NULL"), 1);
    assert_events(1, "customer_frozen");
    assert_int_equal(COUNT("customer_log WHERE action = 'freeze' AND actor = 'admin' AND outcome = 'done'"), 1);
    assert_int_equal(COUNT("work_items WHERE kind = 'mail' AND payload ->> 'customer_id' = '" SOMEONE "'"), 1);
    assert_int_equal(COUNT("work_items WHERE kind = 'hangup' AND payload ->> 'customer_id' = '" SOMEONE "'"), 1);
}

static void other_customers_are_not_touched(void **state UNUSED)
{
    assert_int_equal(change(SOMEONE, CUSTOMER_FREEZES), CHANGE_DONE);
    assert_int_equal(COUNT("customer_customers WHERE id = '" OTHER "' AND status = 'active'"), 1);
    assert_int_equal(COUNT("billing_accounts WHERE customer_id = '" OTHER "' AND status = 'active'"), 1);
}

static void freezing_twice_changes_nothing_but_the_log(void **state UNUSED)
{
    assert_int_equal(change(SOMEONE, CUSTOMER_FREEZES), CHANGE_DONE);
    database_run("CREATE TABLE first AS SELECT tm_deletion_scheduled AS at FROM reclaim.customer_customers"
                 " WHERE status = 'frozen'");
    assert_int_equal(change(SOMEONE, CUSTOMER_FREEZES), CHANGE_UNCHANGED);
    assert_int_equal(COUNT("customer_customers JOIN first ON at = tm_deletion_scheduled"), 1);
    database_run("DROP TABLE first");
    assert_events(1, "customer_frozen");
    assert_int_equal(COUNT("work_items"), 2);
    assert_int_equal(COUNT("customer_log WHERE action = 'freeze' AND outcome = 'unchanged'"), 1);
}

static void a_recovery_undoes_what_the_freeze_did(void **state UNUSED)
{
    assert_int_equal(change(SOMEONE, CUSTOMER_FREEZES), CHANGE_DONE);
    database_run("DELETE FROM reclaim.work_items");
    assert_int_equal(change(SOMEONE, CUSTOMER_RECOVERS), CHANGE_DONE);
    assert_int_equal(COUNT("customer_customers WHERE status = 'active' AND tm_deletion_scheduled IS NULL"), 2);
    assert_int_equal(COUNT("billing_accounts WHERE status = 'active' AND hold_reasons = '{}'"), 2);
    assert_int_equal(COUNT("billing_freezes WHERE thawed_at IS NULL"), 0);
    assert_events(2, "customer_recovered");
    assert_int_equal(COUNT("work_items WHERE kind = 'mail'"), 1);
    assert_int_equal(COUNT("work_items WHERE kind = 'hangup'"), 0);
}

static void a_hold_for_another_reason_stays(void **state UNUSED)
{
    database_run("UPDATE reclaim.billing_accounts SET status = 'frozen', hold_reasons = '{debt}' WHERE id = '" ACCOUNT
                 "'");
    assert_int_equal(change(SOMEONE, CUSTOMER_FREEZES), CHANGE_DONE);
    assert_int_equal(COUNT("billing_accounts WHERE status = 'frozen' AND hold_reasons = '{debt,account_frozen}'"), 1);
    assert_int_equal(change(SOMEONE, CUSTOMER_RECOVERS), CHANGE_DONE);
    assert_int_equal(COUNT("billing_accounts WHERE status = 'frozen' AND hold_reasons = '{debt}'"), 1);
}

static void a_change_that_is_not_allowed_is_refused_and_logged(void **state UNUSED)
{
    assert_int_equal(change(SOMEONE, CUSTOMER_RECOVERS), CHANGE_REFUSED);
    assert_int_equal(COUNT("customer_log WHERE action = 'recover' AND outcome = 'refused'"), 1);
    database_run("UPDATE reclaim.customer_customers SET status = 'deleted' WHERE id = '" SOMEONE "'");
    assert_int_equal(change(SOMEONE, CUSTOMER_FREEZES), CHANGE_REFUSED);
    assert_int_equal(COUNT("customer_customers WHERE status = 'deleted'"), 1);
    assert_events(1, "customer_deleted");
}

static void a_freeze_by_an_admin_is_not_lifted_by_the_owner(void **state UNUSED)
{
    assert_int_equal(change_by(&owner, SOMEONE, CUSTOMER_FREEZES), CHANGE_DONE);
    assert_int_equal(COUNT("customer_customers WHERE frozen_by = 'owner'"), 1);
    assert_int_equal(change_by(&owner, SOMEONE, CUSTOMER_RECOVERS), CHANGE_DONE);
    assert_int_equal(change(SOMEONE, CUSTOMER_FREEZES), CHANGE_DONE);
    assert_int_equal(COUNT("customer_customers WHERE frozen_by = 'admin' AND freeze_reason = 'abuse'"), 1);
    assert_int_equal(change_by(&owner, SOMEONE, CUSTOMER_RECOVERS), CHANGE_BY_ADMIN);
    assert_int_equal(COUNT("customer_customers WHERE status = 'frozen'"), 1);
    assert_int_equal(change(SOMEONE, CUSTOMER_RECOVERS), CHANGE_DONE);
}

static void an_admin_takes_over_the_owners_freeze_and_keeps_its_date(void **state UNUSED)
{
    assert_int_equal(change_by(&owner, SOMEONE, CUSTOMER_FREEZES), CHANGE_DONE);
    database_run("CREATE TABLE first AS SELECT deletion_effective_at AS at FROM reclaim.customer_customers"
                 " WHERE status = 'frozen'");
    assert_int_equal(change(SOMEONE, CUSTOMER_FREEZES), CHANGE_UNCHANGED);
    assert_int_equal(COUNT("customer_customers JOIN first ON at = deletion_effective_at AND frozen_by = 'admin'"), 1);
    database_run("DROP TABLE first");
    assert_int_equal(change_by(&owner, SOMEONE, CUSTOMER_RECOVERS), CHANGE_BY_ADMIN);
    assert_int_equal(COUNT("event_outbox"), 1);
}

static void an_unknown_customer_is_logged_too(void **state UNUSED)
{
    assert_int_equal(change("c0000000-0000-4000-8000-000000000009", CUSTOMER_FREEZES), CHANGE_UNKNOWN);
    assert_int_equal(COUNT("customer_log WHERE outcome = 'unknown'"), 1);
    assert_int_equal(COUNT("work_items"), 0);
}

static void where_no_mail_can_be_sent_none_is_queued(void **state UNUSED)
{
    database_run("UPDATE reclaim.installation SET mails = false");
    assert_int_equal(change(SOMEONE, CUSTOMER_FREEZES), CHANGE_DONE);
    assert_int_equal(COUNT("work_items WHERE kind = 'mail'"), 0);
    assert_int_equal(COUNT("work_items WHERE kind = 'hangup'"), 1);
}

static void a_freeze_that_cannot_be_completed_leaves_nothing(void **state UNUSED)
{
    AUTO(pg) struct pg *holder = connected();
    struct why why = {""};
    struct changed changed;
    assert_int_equal(pg_script(holder, "BEGIN; SELECT FROM reclaim.billing_accounts FOR UPDATE", SOON, &why), OK);
    assert_int_not_equal(change_until(SOMEONE, CUSTOMER_FREEZES, &admin, clock_ns() + NS_PER_S / 2, &changed), OK);
    assert_int_equal(pg_script(holder, "ROLLBACK", SOON, &why), OK);
    assert_int_equal(COUNT("customer_customers WHERE status = 'active'"), 2);
    assert_int_equal(COUNT("event_outbox"), 0);
    assert_int_equal(COUNT("customer_log"), 0);
    assert_int_equal(COUNT("work_items"), 0);
}

static int fresh(void **state UNUSED)
{
    database_run("DELETE FROM reclaim.customer_customers;"
                 "DELETE FROM reclaim.billing_accounts;"
                 "DELETE FROM reclaim.billing_freezes;"
                 "DELETE FROM reclaim.event_outbox;"
                 "DELETE FROM reclaim.customer_told;"
                 "UPDATE reclaim.installation SET mails = true;"
                 "DELETE FROM reclaim.customer_log;"
                 "DELETE FROM reclaim.work_items;"
                 "INSERT INTO reclaim.customer_customers (id, email) VALUES ('" SOMEONE "', 'someone@example.com'),"
                 " ('" OTHER "', 'other@example.com');"
                 "INSERT INTO reclaim.billing_accounts (id, customer_id) VALUES ('" ACCOUNT "', '" SOMEONE "'),"
                 " (gen_random_uuid(), '" OTHER "')");
    return 0;
}

/* The brake counts when the pass begins: what it has not counted it must not delete. */
static void what_becomes_due_during_an_expiry_pass_is_left_to_the_next(void **state UNUSED)
{
    AUTO(pg) struct pg *pg = connected();
    struct expiry_pass pass;
    database_run("CREATE SCHEMA IF NOT EXISTS auth; CREATE TABLE IF NOT EXISTS auth.users (id uuid, email text)");
    assert_int_equal(expiry_begin(pg, EXPIRY_NO_BRAKE, SOON, &pass), OK);
    assert_int_equal(pass.due, 0);
    assert_int_equal(change(SOMEONE, CUSTOMER_FREEZES), CHANGE_DONE);
    database_run("UPDATE reclaim.installation SET clock_shift = interval '1000 hours'");
    assert_int_equal(expiry_step(NULL, pg, "system", &pass), OK);
    assert_true(pass.over);
    assert_int_equal(COUNT("customer_customers WHERE status = 'frozen'"), 1);
    assert_int_equal(pass.processed, 0);
    assert_int_equal(expiry_begin(pg, EXPIRY_NO_BRAKE, SOON, &pass), OK);
    assert_int_equal(pass.due, 1);
    database_run("UPDATE reclaim.installation SET clock_shift = '0'");
}

static int make(void **state UNUSED)
{
    database_make("change");
    return 0;
}

static int drop(void **state UNUSED)
{
    database_drop();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_freeze_holds_billing_publishes_an_event_and_queues_the_work, fresh),
        cmocka_unit_test_setup(other_customers_are_not_touched, fresh),
        cmocka_unit_test_setup(freezing_twice_changes_nothing_but_the_log, fresh),
        cmocka_unit_test_setup(a_recovery_undoes_what_the_freeze_did, fresh),
        cmocka_unit_test_setup(a_hold_for_another_reason_stays, fresh),
        cmocka_unit_test_setup(a_change_that_is_not_allowed_is_refused_and_logged, fresh),
        cmocka_unit_test_setup(an_unknown_customer_is_logged_too, fresh),
        cmocka_unit_test_setup(where_no_mail_can_be_sent_none_is_queued, fresh),
        cmocka_unit_test_setup(a_freeze_by_an_admin_is_not_lifted_by_the_owner, fresh),
        cmocka_unit_test_setup(an_admin_takes_over_the_owners_freeze_and_keeps_its_date, fresh),
        cmocka_unit_test_setup(a_freeze_that_cannot_be_completed_leaves_nothing, fresh),
        cmocka_unit_test_setup(what_becomes_due_during_an_expiry_pass_is_left_to_the_next, fresh),
    };
    return cmocka_run_group_tests(tests, make, drop);
}
