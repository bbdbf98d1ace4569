#include "limits/headers.h"

#include <string.h>
#include <time.h>

#include "../base/unit.h"
#include "base/clock.h"

static const char *header(const struct request *rq, const char *name)
{
    for (const struct reply_header *h = rq->reply.headers; h; h = h->next)
        if (strcmp(h->name, name) == 0)
            return h->value;
    return NULL;
}

static struct ticket ticket_of(enum admission_verdict verdict)
{
    return (struct ticket){
        .verdict = verdict,
        .count = 2,
        .tiers = {
            {.counted = {.tier = TIER_GLOBAL}, .limit = {1000, 60}, .remaining = 900, .reset_ns = 30 * NS_PER_S},
            {.counted = {.tier = TIER_IP}, .limit = {5, 60}, .remaining = 2, .reset_ns = 41 * NS_PER_S - 1},
        }};
}

static void an_admitted_caller_learns_of_the_tier_with_the_least_left(void **state UNUSED)
{
    struct request rq = {.arena = arena_new(1024, 65536)};
    struct ticket t = ticket_of(ADMISSION_GRANTED);
    limit_headers(&rq, &t);
    assert_string_equal(header(&rq, "X-RateLimit-Limit"), "5");
    assert_string_equal(header(&rq, "X-RateLimit-Remaining"), "2");
    assert_null(header(&rq, "Retry-After"));
    assert_string_equal(header(&rq, "RateLimit-Policy"), "\"global\";q=1000;w=60, \"ip\";q=5;w=60");
    assert_string_equal(header(&rq, "RateLimit"), "\"ip\";r=2;t=41");
    arena_free(rq.arena);
}

static void a_refused_caller_waits_for_the_slowest_tier_rounded_up(void **state UNUSED)
{
    struct request rq = {.arena = arena_new(1024, 65536)};
    struct ticket t = ticket_of(ADMISSION_REFUSED);
    t.tiers[0].wait_ns = 2 * NS_PER_S + 1;
    t.tiers[1].wait_ns = NS_PER_S;
    limit_headers(&rq, &t);
    assert_string_equal(header(&rq, "X-RateLimit-Limit"), "1000");
    assert_string_equal(header(&rq, "X-RateLimit-Remaining"), "0");
    assert_string_equal(header(&rq, "Retry-After"), "3");
    assert_string_equal(header(&rq, "RateLimit"), "\"global\";r=0;t=3");
    t.tiers[0].wait_ns = 0;
    t.tiers[1].wait_ns = 1;
    assert_int_equal(limit_retry_after_s(&t), 1);
    arena_free(rq.arena);
}

static void waits_are_told_in_seconds_then_in_minutes(void **state UNUSED)
{
    struct arena *arena = arena_new(1024, 65536);
    assert_string_equal(limit_wait_text(arena, 1).at, "1 second");
    assert_string_equal(limit_wait_text(arena, 45).at, "45 seconds");
    assert_string_equal(limit_wait_text(arena, 59).at, "59 seconds");
    assert_string_equal(limit_wait_text(arena, 60).at, "60 seconds"); /* a whole window of one minute */
    assert_string_equal(limit_wait_text(arena, 61).at, "2 minutes");
    assert_string_equal(limit_wait_text(arena, 120).at, "2 minutes");
    assert_string_equal(limit_wait_text(arena, 121).at, "3 minutes");
    assert_string_equal(limit_wait_text(arena, 3541).at, "60 minutes");
    assert_string_equal(limit_wait_text(arena, 3600).at, "60 minutes"); /* a whole window of one hour */
    arena_free(arena);
}

static int64_t reset_header(struct ticket *t, int64_t held_ns)
{
    struct request rq = {.arena = arena_new(1024, 65536)};
    if (held_ns)
        rq.hold = (struct hold){.until_ns = clock_ns() + held_ns, .step_ns = held_ns};
    limit_headers(&rq, t);
    int64_t reset_s = 0;
    assert_int_equal(str_to_i64(str_of(header(&rq, "X-RateLimit-Reset")), 0, INT64_MAX, &reset_s), OK);
    arena_free(rq.arena);
    return reset_s;
}

static void a_reset_time_is_when_there_is_room_again_rounded_up(void **state UNUSED)
{
    struct ticket t = ticket_of(ADMISSION_REFUSED);
    t.tiers[0].wait_ns = 30 * NS_PER_S;
    for (int i = 0; i < 20; i++) { /* at different fractions of a second */
        int64_t earliest_us = clock_wall_us() + 30 * INT64_C(1000000);
        int64_t reset_s = reset_header(&t, 0);
        assert_true(reset_s * 1000000 >= earliest_us &&
                    (reset_s - 1) * 1000000 < clock_wall_us() + 30 * INT64_C(1000000));
        nanosleep(&(struct timespec){.tv_nsec = 53 * NS_PER_MS}, NULL);
    }
}

static void a_reset_time_never_lies_in_the_past_when_the_answer_leaves(void **state UNUSED)
{
    struct ticket t = ticket_of(ADMISSION_REFUSED);
    t.tiers[0].wait_ns = 1;
    int64_t asked_us = clock_wall_us();
    assert_true(reset_header(&t, 0) * 1000000 > asked_us);
    int64_t leaves_us = clock_wall_us() + 90 * INT64_C(1000000);
    assert_true(reset_header(&t, 90 * NS_PER_S) * 1000000 >= leaves_us);
    struct ticket admitted = ticket_of(ADMISSION_GRANTED);
    leaves_us = clock_wall_us() + 90 * INT64_C(1000000);
    assert_true(reset_header(&admitted, 90 * NS_PER_S) * 1000000 >= leaves_us);
}

static void without_tiers_nothing_is_said(void **state UNUSED)
{
    struct request rq = {.arena = arena_new(1024, 65536)};
    limit_headers(&rq, &(struct ticket){.verdict = ADMISSION_GRANTED});
    assert_null(rq.reply.headers);
    arena_free(rq.arena);
}

static void what_is_not_known_is_not_told(void **state UNUSED)
{
    static const enum admission_verdict unknown[] = {ADMISSION_UNDECIDED, ADMISSION_FAILED};
    for (size_t i = 0; i < COUNT_OF(unknown); i++) {
        struct request rq = {.arena = arena_new(1024, 65536)};
        struct ticket t = ticket_of(unknown[i]);
        limit_headers(&rq, &t);
        assert_null(rq.reply.headers);
        arena_free(rq.arena);
    }
}

static struct ticket ticket_with_full_soft_tier(void)
{
    struct ticket t = ticket_of(ADMISSION_GRANTED);
    t.tiers[1].remaining = 0;
    t.tiers[1].wait_ns = 50 * NS_PER_S; /* the request was its last */
    t.tiers[t.count++] = (struct standing){.counted = {.tier = TIER_EMAIL_VALIDATE},
                                           .limit = {3, 40},
                                           .soft = true,
                                           .was_full = true,
                                           .wait_ns = 30 * NS_PER_S,
                                           .reset_ns = 20 * NS_PER_S};
    return t;
}

static void a_soft_tier_is_told_of_when_asked_for(void **state UNUSED)
{
    struct request rq = {.arena = arena_new(1024, 65536)};
    struct ticket t = ticket_with_full_soft_tier();
    limit_headers(&rq, &t);
    assert_string_equal(header(&rq, "RateLimit-Policy"), "\"global\";q=1000;w=60, \"ip\";q=5;w=60");
    assert_true(ticket_soft_is_full(&t));
    t.tiers[1].remaining = 1;
    ticket_show_soft(&t);
    rq.reply.headers = NULL;
    limit_headers(&rq, &t);
    assert_string_equal(header(&rq, "RateLimit"), "\"email-validate\";r=0;t=20");
    arena_free(rq.arena);
}

static void a_refusal_by_a_soft_tier_names_its_wait_and_no_other(void **state UNUSED)
{
    struct request rq = {.arena = arena_new(1024, 65536)};
    struct ticket t = ticket_with_full_soft_tier();
    ticket_refuse_softly(&t);
    limit_headers(&rq, &t);
    assert_string_equal(header(&rq, "Retry-After"), "30");
    assert_string_equal(header(&rq, "X-RateLimit-Limit"), "3");
    assert_string_equal(header(&rq, "RateLimit"), "\"email-validate\";r=0;t=30");
    arena_free(rq.arena);
}

static void a_wait_is_never_longer_than_the_window(void **state UNUSED)
{
    struct ticket t = ticket_of(ADMISSION_REFUSED);
    t.tiers[1].wait_ns = 61 * NS_PER_S;
    assert_int_equal(limit_retry_after_s(&t), 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_admitted_caller_learns_of_the_tier_with_the_least_left),
        cmocka_unit_test(a_refused_caller_waits_for_the_slowest_tier_rounded_up),
        cmocka_unit_test(waits_are_told_in_seconds_then_in_minutes),
        cmocka_unit_test(a_reset_time_is_when_there_is_room_again_rounded_up),
        cmocka_unit_test(a_reset_time_never_lies_in_the_past_when_the_answer_leaves),
        cmocka_unit_test(what_is_not_known_is_not_told),
        cmocka_unit_test(a_soft_tier_is_told_of_when_asked_for),
        cmocka_unit_test(a_refusal_by_a_soft_tier_names_its_wait_and_no_other),
        cmocka_unit_test(a_wait_is_never_longer_than_the_window),
        cmocka_unit_test(without_tiers_nothing_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
