/* No event is skipped, however late its transaction commits. */
#include "events/floor.h"

#include <stdlib.h>

#include "../base/unit.h"
#include "../pg/server.h"
#include "../work/database.h"
#include "base/clock.h"
#include "events/outbox.h"

#define SOON (clock_ns() + 60 * NS_PER_S)
#define BATCH 2

static void move(struct outbox_floor *f, int64_t oldest_xid, int64_t next_xid, int64_t last, bool more)
{
    floor_move(f, &(struct outbox_reading){oldest_xid, next_xid, last, more});
}

static void the_first_readings_begin_at_the_start(void **state UNUSED)
{
    struct outbox_floor f = {0};
    move(&f, 100, 100, 7, false);
    assert_int_equal(f.at, 0);
    move(&f, 101, 101, 0, false);
    assert_int_equal(f.at, 0); /* at the first reading nothing had been read before it */
}

static void what_was_read_before_every_transaction_of_its_time_ended_is_settled(void **state UNUSED)
{
    struct outbox_floor f = {0};
    move(&f, 100, 100, 7, false);
    move(&f, 101, 101, 9, false); /* the checkpoint is 7, until all before 101 have ended */
    move(&f, 101, 105, 0, false);
    assert_int_equal(f.at, 7);
    move(&f, 105, 105, 0, false);
    assert_int_equal(f.at, 9);
}

static void a_transaction_under_way_keeps_the_floor_down(void **state UNUSED)
{
    struct outbox_floor f = {0};
    move(&f, 100, 100, 7, false);
    move(&f, 100, 103, 9, false); /* 100 is running, and may have a position below 7 */
    for (int64_t next_xid = 104; next_xid < 200; next_xid++) {
        move(&f, 100, next_xid, 0, false);
        assert_int_equal(f.at, 0);
    }
    move(&f, 102, 200, 0, false); /* another transaction of the checkpoint is still running */
    assert_int_equal(f.at, 0);
    move(&f, 103, 201, 0, false);
    assert_int_equal(f.at, 7);
}

static void a_full_batch_settles_no_more_than_it_has_read(void **state UNUSED)
{
    struct outbox_floor f = {0};
    move(&f, 100, 100, 50, false);
    move(&f, 101, 101, 0, false);
    move(&f, 101, 102, 20, true); /* late events below 50: those behind 20 do not fit into the batch */
    assert_int_equal(f.at, 20);
    move(&f, 102, 103, 30, false); /* the rest */
    assert_int_equal(f.at, 50);
}

static void the_floor_never_sinks(void **state UNUSED)
{
    struct outbox_floor f = {.at = 40, .read = 60, .checkpoint = 60, .until_xid = 100};
    move(&f, 100, 100, 10, true);
    assert_int_equal(f.at, 40);
    assert_int_equal(f.read, 60);
}

/* With snapshots and positions of a real database. */

static struct pg *connected(void)
{
    struct pg *pg = pg_new(database_url(), PG_PREPARE_OFF);
    struct why why = {""};
    assert_int_equal(pg_connect(pg, SOON, &why), OK);
    return pg;
}

static void run(struct pg *pg, const char *sql)
{
    struct why why = {""};
    if (pg_script(pg, sql, SOON, &why))
        fail_msg("%s", why.text);
}

#define WRITE                                                                                                          \
    "INSERT INTO reclaim.event_outbox (sequence, type, customer_id, payload)"                                          \
    " VALUES (1, 'customer_frozen', gen_random_uuid(), '{}')"

/* Reads as the relay does, marks the events as published, and returns their number. */
static int read_and_publish(struct pg *pg, struct outbox_floor *f)
{
    struct pg_call calls[] = {{.ask = &outbox_horizon},
                              {.ask = &outbox_fetch, .args = {pg_i64(f->at), pg_i64(BATCH), pg_text("{}")}}};
    const struct pg_call *horizon = &calls[0], *rows = &calls[1];
    assert_int_equal(pg_trip(pg, calls, COUNT_OF(calls), SOON), OK);
    int count = rows->rows;
    move(f, pg_get_i64(horizon, 0, 0), pg_get_i64(horizon, 0, 1),
         count ? pg_get_i64(rows, count - 1, EVENT_POSITION) : 0, outbox_has_more(rows, BATCH));
    if (count)
        database_run("UPDATE reclaim.event_outbox SET published_at = now() WHERE published_at IS NULL");
    return count;
}

static void an_event_that_is_committed_late_is_still_read(void **state UNUSED)
{
    AUTO(pg) struct pg *reader = connected();
    AUTO(pg) struct pg *late = connected();
    struct outbox_floor f = {0};
    run(late, "BEGIN; " WRITE);
    for (int i = 0; i < 5; i++) { /* later events are committed and published before it */
        database_run(WRITE);
        assert_int_equal(read_and_publish(reader, &f), 1);
        assert_int_equal(read_and_publish(reader, &f), 0);
    }
    run(late, "COMMIT");
    assert_int_equal(read_and_publish(reader, &f), 1);
}

static void the_floor_rises_once_nothing_can_be_committed_below_it(void **state UNUSED)
{
    AUTO(pg) struct pg *reader = connected();
    AUTO(pg) struct pg *late = connected();
    struct outbox_floor f = {0};
    run(late, "BEGIN; " WRITE);
    database_run(WRITE);
    assert_int_equal(read_and_publish(reader, &f), 1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(read_and_publish(reader, &f), 0);
    assert_int_equal(f.at, 0);
    run(late, "ROLLBACK");
    for (int i = 0; i < 3; i++)
        assert_int_equal(read_and_publish(reader, &f), 0);
    assert_int_equal(f.at, database_number("SELECT max(position) FROM reclaim.event_outbox"));
}

#define WRITE_LARGE(bytes, count)                                                                                      \
    "INSERT INTO reclaim.event_outbox (sequence, type, customer_id, payload)"                                          \
    " SELECT 1, 'customer_frozen', gen_random_uuid(), to_jsonb(repeat('x', " bytes ")) FROM generate_series(1, " count \
    ")"

/* Reads what is behind the position, as the relay does; returns how many rows, and the last position. */
static int read_behind(struct pg *pg, int64_t *position, bool *ret_more, struct pg_call *ret)
{
    *ret = (struct pg_call){.ask = &outbox_fetch, .args = {pg_i64(*position), pg_i64(1000), pg_text("{}")}};
    assert_int_equal(pg_ask(pg, ret, SOON), OK);
    *ret_more = outbox_has_more(ret, 1000);
    if (ret->rows)
        *position = pg_get_i64(ret, ret->rows - 1, EVENT_POSITION);
    return ret->rows;
}

static void a_read_of_large_events_ends_after_some_megabytes_and_none_is_left_out(void **state UNUSED)
{
    AUTO(pg) struct pg *reader = connected();
    struct pg_call rows;
    int64_t position = 0;
    int count = 0, reads = 0;
    database_run(WRITE_LARGE("1000000", "20"));
    for (bool more = true; more; reads++) {
        int read = read_behind(reader, &position, &more, &rows);
        assert_in_range(read, 1, 9);
        count += read;
    }
    assert_int_equal(count, 20);
    assert_int_equal(reads, 3);
}

static void the_data_of_an_event_that_is_too_large_is_not_read(void **state UNUSED)
{
    AUTO(pg) struct pg *reader = connected();
    struct pg_call rows;
    int64_t position = 0;
    bool more = false;
    database_run(WRITE_LARGE("17000000", "1"));
    database_run(WRITE);
    assert_int_equal(read_behind(reader, &position, &more, &rows), 1);
    assert_true(pg_is_null(&rows, 0, EVENT_DATA));
    assert_true(more);
    assert_int_equal(read_behind(reader, &position, &more, &rows), 1);
    assert_false(pg_is_null(&rows, 0, EVENT_DATA) || more);
}

static int fresh(void **state UNUSED)
{
    database_run("DELETE FROM reclaim.event_outbox");
    return 0;
}

/* On a separate server: transactions of other tests would keep the floor down. */
static struct server *server;

static int make(void **state UNUSED)
{
    server = server_start(NULL);
    setenv("RECLAIM_TEST_DATABASE_URL", server_url(server), 1);
    database_make("floor");
    return 0;
}

static int drop(void **state UNUSED)
{
    server_free(server);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_readings_begin_at_the_start),
        cmocka_unit_test(what_was_read_before_every_transaction_of_its_time_ended_is_settled),
        cmocka_unit_test(a_transaction_under_way_keeps_the_floor_down),
        cmocka_unit_test(a_full_batch_settles_no_more_than_it_has_read),
        cmocka_unit_test(the_floor_never_sinks),
        cmocka_unit_test_setup(an_event_that_is_committed_late_is_still_read, fresh),
        cmocka_unit_test_setup(the_floor_rises_once_nothing_can_be_committed_below_it, fresh),
        cmocka_unit_test_setup(a_read_of_large_events_ends_after_some_megabytes_and_none_is_left_out, fresh),
        cmocka_unit_test_setup(the_data_of_an_event_that_is_too_large_is_not_read, fresh),
    };
    return cmocka_run_group_tests(tests, make, drop);
}
