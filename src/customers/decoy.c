#include "customers/decoy.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "credentials/verifier.h"

#define REFRESH_NS (3600 * NS_PER_S)

METRIC_COUNTER(unsupported, "reclaim_password_hashes_unsupported_total",
               "Passwords refused since the stored hash is of a kind or cost that Reclaim does not check.");

const struct statement decoy_read_usual = {
    .name = "decoy_read_usual",
    .sql = "SELECT reclaim.usual_password_hash() AS beginning",
    .params = 0,
    .columns = "beginning:text",
};

void decoy_refresh(struct customers *context, struct pg *pg, int64_t deadline_ns)
{
    int64_t now_ns = clock_ns(), due_ns = atomic_load(&context->decoy_due_ns);
    if (now_ns < due_ns || !atomic_compare_exchange_strong(&context->decoy_due_ns, &due_ns, now_ns + REFRESH_NS))
        return;
    struct pg_call call = {.ask = &decoy_read_usual};
    struct password_decoy decoy;
    enum err e = pg_ask(pg, &call, deadline_ns);
    if (e)
        log_warn("the usual cost of passwords cannot be read", F_STR("error", err_name(e)),
                 F_STR("sqlstate", call.sqlstate));
    else if (!pg_is_null(&call, 0, 0) && password_decoy_like(pg_get(&call, 0, 0), &decoy) == OK)
        verifier_set_decoy(context->verifier, &decoy);
}

void unsupported_hash_seen(void)
{
    static atomic_bool logged;
    counter_add(&unsupported, 1);
    if (!atomic_exchange(&logged, true))
        log_warn(
            "a stored password hash is not of a kind or cost that Reclaim checks: such users sign in with a mailed "
            "code",
            F_STR("checked", "bcrypt up to cost 14, Argon2id and Argon2i up to 256 MiB and 10 passes"));
}
