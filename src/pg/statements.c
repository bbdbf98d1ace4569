/* Compares the declared parameters and columns of statements with the server's description of them. */
#include <string.h>

#include "base/clock.h"
#include "pg/inside.h"
#include "pg/prepared.h"

#define CHECK_NS (30 * NS_PER_S)

/* The OIDs of built-in types are the same in every cluster. */
static const struct {
    struct str name;
    Oid oid;
} types[] = {
    {STR("bool"), 16},          {STR("bytea"), 17},
    {STR("char"), 18},          {STR("name"), 19},
    {STR("int8"), 20},          {STR("int2"), 21},
    {STR("int4"), 23},          {STR("regproc"), 24},
    {STR("text"), 25},          {STR("oid"), 26},
    {STR("xid"), 28},           {STR("json"), 114},
    {STR("cidr"), 650},         {STR("float4"), 700},
    {STR("float8"), 701},       {STR("inet"), 869},
    {STR("bool[]"), 1000},      {STR("bytea[]"), 1001},
    {STR("name[]"), 1003},      {STR("int2[]"), 1005},
    {STR("int4[]"), 1007},      {STR("text[]"), 1009},
    {STR("varchar[]"), 1015},   {STR("int8[]"), 1016},
    {STR("float8[]"), 1022},    {STR("inet[]"), 1041},
    {STR("bpchar"), 1042},      {STR("varchar"), 1043},
    {STR("date"), 1082},        {STR("time"), 1083},
    {STR("timestamp"), 1114},   {STR("timestamptz"), 1184},
    {STR("interval"), 1186},    {STR("timestamptz[]"), 1185},
    {STR("numeric"), 1700},     {STR("regclass"), 2205},
    {STR("regtype"), 2206},     {STR("record"), 2249},
    {STR("void"), 2278},        {STR("uuid"), 2950},
    {STR("uuid[]"), 2951},      {STR("pg_lsn"), 3220},
    {STR("jsonb"), 3802},       {STR("jsonb[]"), 3807},
    {STR("pg_snapshot"), 5038}, {STR("xid8"), 5069},
};

static const char *type_name(Oid oid)
{
    for (size_t i = 0; i < COUNT_OF(types); i++)
        if (types[i].oid == oid)
            return types[i].name.at;
    return "a type that is not built in";
}

static enum err compare_column(const struct statement *ask, const PGresult *described, int i, struct str declared,
                               struct why *why)
{
    struct str name;
    if (!str_split(&declared, ':', &name))
        return why_set(why, ERR_INPUT, "%s declares a column without a name", ask->name);
    const char *has = PQfname(described, i);
    if (!str_eq(name, str_of(has)))
        return why_set(why, ERR_INPUT, "%s declares column %d as %.*s, the database has %s", ask->name, i + 1,
                       STR_ARGS(name), has);
    for (size_t t = 0; t < COUNT_OF(types); t++)
        if (str_eq(types[t].name, declared) && types[t].oid == PQftype(described, i))
            return OK;
    return why_set(why, ERR_INPUT, "%s declares %s as %.*s, the database has %s (type %u)", ask->name, has,
                   STR_ARGS(declared), type_name(PQftype(described, i)), PQftype(described, i));
}

static int count_columns(const char *columns)
{
    int count = *columns != '\0';
    for (; *columns; columns++)
        count += *columns == ' ';
    return count;
}

static enum err compare(const struct statement *ask, const PGresult *described, struct why *why)
{
    if (PQnparams(described) != ask->params)
        return why_set(why, ERR_INPUT, "%s declares %d parameters, the database has %d", ask->name, ask->params,
                       PQnparams(described));
    if (PQnfields(described) != count_columns(ask->columns))
        return why_set(why, ERR_INPUT, "%s declares %d columns, the database has %d", ask->name,
                       count_columns(ask->columns), PQnfields(described));
    struct str rest = str_of(ask->columns), column;
    for (int i = 0; i < PQnfields(described) && str_split(&rest, ' ', &column); i++) {
        enum err e = compare_column(ask, described, i, column, why);
        if (e)
            return e;
    }
    return OK;
}

/* Reads the results of Parse, Describe and Sync; *ret is the description unless one of them failed. */
static enum err read_description(struct pg *pg, int64_t deadline_ns, PGresult **ret, char sqlstate[6])
{
    enum err first = OK;
    for (int i = 0; i < 6; i++) {
        PGresult *result = NULL;
        enum err e = pg_next_result(pg, deadline_ns, &result);
        if (e)
            return e;
        ExecStatusType status = result ? PQresultStatus(result) : PGRES_EMPTY_QUERY;
        if (status == PGRES_FATAL_ERROR && !first)
            first = pg_error_of(result, sqlstate);
        if (status == PGRES_COMMAND_OK && i > 1 && !*ret)
            *ret = result;
        else
            PQclear(result);
        if (status == PGRES_PIPELINE_SYNC || first == ERR_CLOSED)
            return first;
    }
    return ERR_CLOSED;
}

static enum err check(struct pg *pg, const struct statement *ask, int64_t deadline_ns, struct why *why)
{
    char sqlstate[6] = "";
    PGresult *described = NULL;
    enum err e = ERR_CLOSED;
    if (PQsendPrepare(pg->conn, "", ask->sql, 0, NULL) && PQsendDescribePrepared(pg->conn, "") &&
        PQpipelineSync(pg->conn))
        e = read_description(pg, deadline_ns, &described, sqlstate);
    if (e == ERR_CLOSED || e == ERR_TIMEOUT)
        pg_disconnect(pg);
    if (e)
        e = why_set(why, e, "%s cannot be prepared: %s%s%s", ask->name, err_name(e), sqlstate[0] ? ", SQLSTATE " : "",
                    sqlstate);
    else if (!described)
        e = why_set(why, ERR_DATABASE, "%s was not described", ask->name);
    else
        e = compare(ask, described, why);
    PQclear(described);
    return e;
}

static enum err check_name(const struct statement *const *all, size_t index, struct why *why)
{
    const char *name = all[index]->name;
    if (!*name || strlen(name) > PREPARED_NAME_MAX || strchr(name, '"'))
        return why_set(why, ERR_INPUT, "\"%s\" is no name for a statement", name);
    if (all[index]->params < 0 || all[index]->params > PG_ARGS_MAX)
        return why_set(why, ERR_INPUT, "%s has more than %d parameters", name, PG_ARGS_MAX);
    for (size_t i = 0; i < index; i++)
        if (all[i] != all[index] && !strcmp(all[i]->name, name))
            return why_set(why, ERR_INPUT, "two statements are called %s", name);
    return OK;
}

enum err pg_check_statements(struct pg *pg, const struct statement *const *all, size_t count, struct why *why)
{
    int64_t deadline_ns = clock_ns() + CHECK_NS;
    for (size_t i = 0; i < count; i++) {
        enum err e = check_name(all, i, why);
        if (!e && !pg->conn)
            e = why_set(why, ERR_CLOSED, "there is no connection to the database");
        if (!e)
            e = check(pg, all[i], deadline_ns, why);
        if (e)
            return e;
    }
    return OK;
}
