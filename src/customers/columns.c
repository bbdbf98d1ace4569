#include "customers/columns.h"

const struct statement columns_list = {
    .name = "columns_list",
    .sql =
        "SELECT table_name, column_name, type, decision, deletion, detail FROM reclaim.columns_list() WHERE NOT known",
    .params = 0,
    .columns = "table_name:text column_name:text type:text decision:text deletion:text detail:text",
};

const struct statement columns_check = {
    .name = "columns_check",
    .sql = "SELECT table_name, pg_catalog.string_agg(column_name, ', ' ORDER BY column_name)"
           "   FILTER (WHERE deletion = 'clears' AND decision IS NULL) AS undecided,"
           " pg_catalog.string_agg(column_name || ' (' || detail || ')', ', ' ORDER BY column_name)"
           "   FILTER (WHERE deletion = 'keeps' AND detail <> 'by decision' AND NOT known) AS kept,"
           " pg_catalog.string_agg(column_name || ' (' || detail || ')', ', ' ORDER BY column_name)"
           "   FILTER (WHERE deletion = 'keeps' AND known) AS kept_own"
           " FROM reclaim.columns_list() GROUP BY table_name ORDER BY table_name",
    .params = 0,
    .columns = "table_name:text undecided:text kept:text kept_own:text",
};

const struct statement column_decide = {
    .name = "column_decide",
    .sql = "SELECT reclaim.column_decide($1, $2, $3, $4) AS fault",
    .params = 4,
    .columns = "fault:text",
};
