#include "erasure/cascade.h"

#include "erasure/eraser.h"

const struct statement cascade_add = {
    .name = "cascade_add",
    .sql = "SELECT reclaim.cascade_add($1, $2, $3, $4, pg_catalog.string_to_array($5, ','), $6::int4, $7::bool, $8, "
           "$9) AS lack",
    .params = 9,
    .columns = "lack:text",
};

const struct statement cascade_preset = {
    .name = "cascade_preset",
    .sql = "SELECT name, table_name, lack FROM reclaim.cascade_preset($1, $2::bool)",
    .params = 2,
    .columns = "name:text table_name:text lack:text",
};

const struct statement cascade_switch = {
    .name = "cascade_switch",
    .sql = "SELECT reclaim.cascade_switch($1, $2, $3) AS lack",
    .params = 3,
    .columns = "lack:text",
};

const struct statement cascade_rescan = {
    .name = "cascade_rescan",
    .sql = "SELECT reclaim.cascade_rescan_ask($1::uuid) AS customers",
    .params = 1,
    .columns = "customers:int8",
};

const struct statement cascade_list = {
    .name = "cascade_list",
    .sql = "SELECT p.name, p.kind, coalesce(p.table_name, '') AS table_name,"
           " coalesce(p.customer_column, '') AS customer_column, coalesce(p.soft_delete_column, '') AS soft,"
           " p.page_size, p.enabled, CASE WHEN p.kind = 'table' THEN reclaim.cascade_lack(p) END AS lack,"
           " p.id_of, p.label, coalesce(c.emptied, '') AS emptied, coalesce(c.kept, '') AS kept,"
           " coalesce(p.bucket, '') AS bucket, coalesce(p.prefix, '') AS prefix"
           " FROM reclaim.cascade_participants p CROSS JOIN LATERAL (SELECT"
           "   pg_catalog.string_agg(n.name, ', ' ORDER BY n.name) FILTER (WHERE n.value IS NOT NULL) AS emptied,"
           "   pg_catalog.string_agg(n.name || ' (' || n.reason || ')', ', ' ORDER BY n.name)"
           "     FILTER (WHERE n.value IS NULL) AS kept FROM reclaim.cascade_clearings(p) n) c ORDER BY p.name",
    .params = 0,
    .columns =
        "name:text kind:text table_name:text customer_column:text soft:text page_size:int4 enabled:bool lack:text "
        "id_of:text label:text emptied:text kept:text bucket:text prefix:text",
};

const struct statement cascade_status = {
    .name = "cascade_status",
    .sql = "SELECT participant, count(*) FILTER (WHERE status = 'pending') AS pending,"
           " count(*) FILTER (WHERE status = 'failed') AS failed, count(*) FILTER (WHERE status = 'done') AS done,"
           " coalesce(sum(rows), 0)::int8 AS rows,"
           " reclaim.rfc3339(min(e.requested_at) FILTER (WHERE status NOT IN ('done', 'kept'))) AS oldest, max(error) "
           "AS error,"
           " count(*) FILTER (WHERE status = 'kept') AS kept"
           " FROM reclaim.cascade_receipts r JOIN reclaim.erasures e USING (customer_id) GROUP BY 1 ORDER BY 1",
    .params = 0,
    .columns = "participant:text pending:int8 failed:int8 done:int8 rows:int8 oldest:text error:text kept:int8",
};

/* Both of the above, for the console. */
const struct statement cascade_overview = {
    .name = "cascade_overview",
    .sql =
        "SELECT pg_catalog.json_build_object('items', coalesce(pg_catalog.json_agg(pg_catalog.row_to_json(o) ORDER BY"
        " o.name), '[]'))::text AS overview FROM (SELECT p.name, p.label, p.kind, p.table_name, p.customer_column,"
        "   p.id_of AS by, p.soft_delete_column AS soft_delete, p.bucket, p.prefix, p.enabled,"
        "   CASE WHEN p.kind = 'table' AND p.enabled THEN reclaim.cascade_lack(p) END AS finding,"
        "   coalesce(s.pending, 0) AS pending, coalesce(s.failed, 0) AS failed, coalesce(s.done, 0) AS done,"
        "   coalesce(s.kept, 0) AS kept, coalesce(s.rows, 0) AS rows, s.oldest, s.error"
        "   FROM reclaim.cascade_participants p LEFT JOIN (SELECT r.participant,"
        "     count(*) FILTER (WHERE r.status = 'pending') AS pending, count(*) FILTER (WHERE r.status = 'failed') AS "
        "failed,"
        "     count(*) FILTER (WHERE r.status = 'done') AS done, count(*) FILTER (WHERE r.status = 'kept') AS kept,"
        "     coalesce(sum(r.rows), 0)::int8 AS rows,"
        "     reclaim.rfc3339(min(e.requested_at) FILTER (WHERE r.status IN ('pending', 'failed'))) AS oldest,"
        "     max(r.error) FILTER (WHERE r.status = 'failed') AS error"
        "     FROM reclaim.cascade_receipts r JOIN reclaim.erasures e USING (customer_id) GROUP BY 1) s"
        "   ON s.participant = p.name) o",
    .params = 0,
    .columns = "overview:text",
};

const struct statement cascade_ledger = {
    .name = "cascade_ledger",
    .sql = "SELECT reclaim.erasure_ledger($1::uuid)::text AS ledger",
    .params = 1,
    .columns = "ledger:text",
};

const struct statement cascade_preview = {
    .name = "cascade_preview",
    .sql = "SELECT reclaim.erasure_preview($1::uuid, $2::int4)::text AS preview",
    .params = 2,
    .columns = "preview:text",
};

const struct statement cascade_public = {
    .name = "cascade_public",
    .sql = "SELECT reclaim.erasure_participants($1::int8)::text AS answer",
    .params = 1,
    .columns = "answer:text",
};

const struct statement cascade_redrive = {
    .name = "cascade_redrive",
    .sql = "SELECT reclaim.cascade_redrive($1::uuid, $2) AS receipts",
    .params = 2,
    .columns = "receipts:int8",
};

static const struct statement receive = {
    .name = "cascade_receive",
    .sql = "SELECT reclaim.cascade_receive($1::uuid, $2, $3::bool, $4::int8, $5, $6) AS outcome",
    .params = 6,
    .columns = "outcome:text",
};

const struct statement *const cascade_statements[] = {
    &cascade_add,      &cascade_list,   &cascade_status,       &cascade_ledger,   &cascade_preview,
    &cascade_redrive,  &receive,        &eraser_due,           &eraser_page,      &eraser_put_off,
    &eraser_census,    &eraser_rescan,  &cascade_preset,       &cascade_switch,   &cascade_rescan,
    &cascade_overview, &cascade_public, &erasure_read_by_link, &certificate_read, &certificate_generation,
};
const size_t cascade_statement_count = COUNT_OF(cascade_statements);

bool participant_name_is_sound(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!plain && (i == 0 || (c != '-' && c != '_' && c != '.')))
            return false;
    }
    return name.len > 0 && name.len <= PARTICIPANT_NAME_MAX;
}

enum err cascade_receive(struct pg *pg, const char *customer_id, const char *participant, bool done, int64_t rows,
                         const char *error, enum receipt_reporter by, int64_t deadline_ns)
{
    if (!str_is_uuid(str_of(customer_id)) || !participant_name_is_sound(str_of(participant)))
        return ERR_MISSING;
    struct pg_call call = {.ask = &receive,
                           .args = {pg_text(customer_id), pg_text(participant), pg_text(done ? "true" : "false"),
                                    rows >= 0 ? pg_i64(rows) : pg_null(), error ? pg_text(error) : pg_null(),
                                    pg_text(by == REPORTED_BY_SERVICE ? "service" : "administrator")}};
    enum err e = pg_ask(pg, &call, deadline_ns);
    return e ? e : str_eq(pg_get(&call, 0, 0), STR("missing")) ? ERR_MISSING : OK;
}
