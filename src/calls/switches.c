#include "calls/switches.h"

#include <string.h>

#include "base/buf.h"

/* The latest start's address is shown. What `reclaim switch add default` recorded stays. */
const struct statement switch_record = {
    .name = "switch_record",
    .sql = "INSERT INTO reclaim.switches AS s (name, address) VALUES ('" SWITCH_OF_SETTING "', $1)"
           " ON CONFLICT (name) DO UPDATE SET address = EXCLUDED.address, updated_at = pg_catalog.clock_timestamp()"
           " WHERE s.url IS NULL AND s.address <> EXCLUDED.address",
    .params = 1,
    .columns = "",
};

const struct statement switch_add = {
    .name = "switch_add",
    .sql = "SELECT added, others FROM reclaim.switch_add($1, $2)",
    .params = 2,
    .columns = "added:bool others:int8",
};

const struct statement switch_remove = {
    .name = "switch_remove",
    .sql = "SELECT outcome, coalesce(live, 0) AS live, coalesce(by_setting, false) AS by_setting"
           " FROM reclaim.switch_remove($1, $2::bool)",
    .params = 2,
    .columns = "outcome:text live:int8 by_setting:bool",
};

const struct statement switches_list = {
    .name = "switches_list",
    .sql = "SELECT s.name, s.address, CASE WHEN s.url IS NULL THEN 'setting' ELSE 'table' END AS source,"
           " (SELECT pg_catalog.count(*) FROM reclaim.call_calls c WHERE c.status <> 'hangup'"
           "   AND c.sip_call_id IS NOT NULL AND coalesce(c.switch, (SELECT f.name FROM reclaim.switches f"
           "   ORDER BY f.created_at, f.name LIMIT 1)) = s.name) AS live_calls,"
           " reclaim.rfc3339(s.created_at) AS created_at, s.url FROM reclaim.switches s ORDER BY s.created_at, s.name",
    .params = 0,
    .columns = "name:text address:text source:text live_calls:int8 created_at:text url:text",
};

const struct statement switch_lacking = {
    .name = "switch_lacking",
    .sql = "SELECT EXISTS (SELECT FROM reclaim.call_calls WHERE sip_call_id IS NOT NULL)"
           " AND NOT EXISTS (SELECT FROM reclaim.switches) AS lacking",
    .params = 0,
    .columns = "lacking:bool",
};

bool switch_name_is_sound(struct str name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789", others[] = "._-";
    for (size_t i = 0; i < name.len; i++)
        if (!name.at[i] || (!strchr(letters, name.at[i]) && (i == 0 || !strchr(others, name.at[i]))))
            return false;
    return name.len > 0 && name.len <= 63;
}

/* Where user and password end, before the host; `authority` when there are none. */
static const char *host_of(const char *authority)
{
    const char *end = authority + strcspn(authority, "/?#");
    const char *at = memrchr(authority, '@', (size_t)(end - authority));
    return at ? at + 1 : authority;
}

static const char *authority_of(const char *url)
{
    const char *slashes = strstr(url, "://");
    return slashes ? slashes + 3 : url;
}

bool switch_url_has_secrets(const char *url)
{
    const char *authority = authority_of(url);
    return host_of(authority) != authority || strpbrk(authority, "?#");
}

void switch_address(const char *url, char ret[SWITCH_URL_MAX + 1])
{
    const char *authority = authority_of(url), *host = host_of(authority);
    struct buf out = buf_over(ret, SWITCH_URL_MAX + 1);
    buf_add(&out, (struct str){url, (size_t)(authority - url)});
    buf_add(&out, (struct str){host, strcspn(host, "?#")});
    if (!buf_str(&out).at)
        ret[0] = 0;
}

enum err switches_record_setting(struct pg *pg, const char *url, int64_t deadline_ns, struct why *why)
{
    char address[SWITCH_URL_MAX + 1];
    switch_address(url, address);
    struct pg_call call = {.ask = &switch_record, .args = {pg_text(address)}};
    enum err e = pg_ask(pg, &call, deadline_ns);
    return e ? why_set(why, e, "the switch of RECLAIM_SWITCH_RPC_URL cannot be recorded (%s %s)", err_name(e),
                       call.sqlstate)
             : OK;
}
