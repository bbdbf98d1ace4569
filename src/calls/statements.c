#include "calls/statements.h"

#include "api/read.h"
#include "calls/calls.h"
#include "calls/switches.h"
#include "gate/frozen_customers.h"

/* The freeze that the refusal of a call tells of; null for other outcomes. */
#define FREEZE " c.scheduled_us, c.effective_us, c.by_admin, c.held"
#define FREEZE_JOIN(id)                                                                                                \
    " LEFT JOIN LATERAL reclaim.customer_freeze(CASE WHEN begun.outcome = 'frozen' THEN " id " END) AS c ON true"

/* Locks the customer and inserts in statements of their own: see sql/functions/calls/call_begin.sql. */
const struct statement call_begin = {
    .name = "call_begin",
    .sql = "SELECT begun.outcome, begun.call," FREEZE " FROM reclaim.call_begin($1::uuid, $2, $3,"
           " $4, $5, $6, $7::int8, $8::uuid, $9::uuid, $10::uuid, $11) AS begun" FREEZE_JOIN("$1::uuid"),
    .params = 11,
    .columns = "outcome:text call:text " FREEZE_COLUMNS,
};

/* A batch in the given order; the function takes a new snapshot for each. */
const struct statement calls_begin = {
    .name = "calls_begin",
    .sql = "SELECT begun.outcome, begun.call," FREEZE ", asked.number FROM pg_catalog.json_to_recordset($1::json)"
           " AS asked (number int8, customer uuid, direction text, source text, destination text, sip_call_id text,"
           " from_tag text, cseq int8, confbridge uuid, switch text)"
           " CROSS JOIN LATERAL reclaim.call_begin(asked.customer, asked.direction, asked.source, asked.destination,"
           " asked.sip_call_id, asked.from_tag, asked.cseq, NULL, asked.confbridge, NULL, asked.switch) AS "
           "begun" FREEZE_JOIN("asked.customer"),
    .params = 1,
    .columns = "outcome:text call:text " FREEZE_COLUMNS " number:int8",
};

const struct statement calls_limit_lock_wait = {
    .name = "calls_limit_lock_wait",
    .sql = "SELECT pg_catalog.set_config('lock_timeout', '100ms', true) AS most",
    .params = 0,
    .columns = "most:text",
};

const struct statement call_lock = {
    .name = "call_lock",
    .sql = "SELECT c.status, reclaim.call_object(c)::text AS call FROM reclaim.call_calls c WHERE c.id = $1::uuid"
           " FOR NO KEY UPDATE",
    .params = 1,
    .columns = "status:text call:text",
};

/* The reason of the first hang-up stays. */
const struct statement call_change_status = {
    .name = "call_change_status",
    .sql = "UPDATE reclaim.call_calls c SET status = $2, to_tag = coalesce($3, c.to_tag),"
           " hangup_reason = coalesce(nullif(c.hangup_reason, ''), $4, ''),"
           " tm_update = pg_catalog.clock_timestamp(),"
           " tm_progressing = CASE WHEN $2 = 'progressing' THEN pg_catalog.clock_timestamp() ELSE c.tm_progressing END,"
           " tm_hangup = CASE WHEN $2 = 'hangup' THEN pg_catalog.clock_timestamp() END"
           " WHERE c.id = $1::uuid RETURNING reclaim.call_object(c)::text AS call",
    .params = 4,
    .columns = "call:text",
};

const struct statement call_show = {
    .name = "call_show",
    .sql = "SELECT reclaim.call_object(c)::text AS call FROM reclaim.call_calls c WHERE c.id = $1::uuid",
    .params = 1,
    .columns = "call:text",
};

const struct statement calls_list_all = {
    .name = "calls_list_all",
    .sql = PAGE_SQL("SELECT c.id, reclaim.call_object(c)::text AS object FROM reclaim.call_calls c"
                    " WHERE c.id > $1::uuid AND c.tm_delete IS NULL ORDER BY c.id LIMIT $2::int8"),
    .params = 2,
    .columns = "id:uuid object:text",
};

const struct statement calls_list_of = {
    .name = "calls_list_of",
    .sql = PAGE_SQL("SELECT c.id, reclaim.call_object(c)::text AS object FROM reclaim.call_calls c"
                    " WHERE c.customer_id = $3::uuid AND c.id > $1::uuid AND c.tm_delete IS NULL"
                    " ORDER BY c.id LIMIT $2::int8"),
    .params = 3,
    .columns = "id:uuid object:text",
};

/* Both ends of a call may be customers: then two rows share a dialog at a switch, and both have ended. */
const struct statement calls_mark_gone = {
    .name = "calls_mark_gone",
    .sql = "UPDATE reclaim.call_calls c SET status = 'hangup', tm_hangup = pg_catalog.clock_timestamp(),"
           " tm_update = pg_catalog.clock_timestamp(),"
           " hangup_reason = coalesce(nullif(c.hangup_reason, ''), 'normal')"
           " WHERE c.status <> 'hangup' AND c.id IN (SELECT pg_catalog.unnest($1::uuid[]) UNION"
           "   SELECT o.id FROM reclaim.call_calls g JOIN reclaim.call_calls o ON o.sip_call_id = g.sip_call_id"
           "   AND coalesce(o.from_tag, '') = coalesce(g.from_tag, '') AND coalesce(o.cseq, 0) = coalesce(g.cseq, 0)"
           "   AND o.switch IS NOT DISTINCT FROM g.switch WHERE g.id = ANY ($1::uuid[]))",
    .params = 1,
    .columns = "",
};

const struct statement calls_end = {
    .name = "calls_end",
    .sql = "SELECT coalesce(standing, '') AS standing, left_over, marked, seconds::text AS seconds"
           " FROM reclaim.calls_end($1::uuid)",
    .params = 1,
    .columns = "standing:text left_over:int8 marked:int8 seconds:text",
};

const struct statement calls_end_many = {
    .name = "calls_end_many",
    .sql = "SELECT reclaim.calls_end_many(ARRAY(SELECT pg_catalog.json_array_elements_text("
           "$1::json -> 'customer_ids')::uuid)) AS queued",
    .params = 1,
    .columns = "queued:int8",
};

#define AT_SWITCH                                                                                                      \
    " FROM reclaim.call_calls c JOIN reclaim.switches s ON s.name = coalesce(c.switch, (SELECT f.name FROM "           \
    "reclaim.switches f"                                                                                               \
    " ORDER BY f.created_at, f.name LIMIT 1)) WHERE c.ending_for = $1::uuid AND c.status <> 'hangup'"                  \
    " AND c.sip_call_id IS NOT NULL"

/* $4: the caller has RECLAIM_SWITCH_RPC_URL; $5: switches that failed. Names longer than any switch gives are cut, so that a
 * page of calls has a bound; no switch knows such a dialog. */
const struct statement calls_ending = {
    .name = "calls_ending",
    .sql = "SELECT c.id, pg_catalog.left(c.sip_call_id, 255) AS sip_call_id,"
           " pg_catalog.left(coalesce(c.from_tag, ''), 128) AS from_tag,"
           " pg_catalog.left(coalesce(c.to_tag, ''), 128) AS to_tag,"
           " coalesce(c.cseq, 0) AS cseq, c.status = 'canceling' AS rings, s.name AS switch, s.url" AT_SWITCH
           " AND c.id > $2::uuid AND (s.url IS NOT NULL OR $4::bool) AND s.name <> ALL ($5::text[])"
           " ORDER BY c.id LIMIT $3::int8",
    .params = 5,
    .columns = "id:uuid sip_call_id:text from_tag:text to_tag:text cseq:int8 rings:bool switch:text url:text",
};

/* Calls that only an instance with RECLAIM_SWITCH_RPC_URL can end. */
const struct statement calls_elsewhere = {
    .name = "calls_elsewhere",
    .sql = "SELECT EXISTS (SELECT" AT_SWITCH " AND s.url IS NULL) AS elsewhere",
    .params = 1,
    .columns = "elsewhere:bool",
};

const struct statement hangup_hand_over = {
    .name = "hangup_hand_over",
    .sql = "SELECT reclaim.hangup_hand_over($1::int8, $2::uuid) AS left_to_others",
    .params = 2,
    .columns = "left_to_others:bool",
};

const struct statement *const calls_statements[] = {
    &calls_begin,    &calls_limit_lock_wait, &call_begin,      &call_lock,        &call_change_status,
    &call_show,      &calls_list_all,        &calls_list_of,   &calls_mark_gone,  &calls_end,
    &calls_end_many, &calls_ending,          &calls_elsewhere, &hangup_hand_over, &switch_record,
    &switch_add,     &switch_remove,         &switches_list,   &switch_lacking};
const size_t calls_statement_count = COUNT_OF(calls_statements);
