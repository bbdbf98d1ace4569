/* `reclaim audit verify`: whether the sealed log and what it covers are as they were sealed. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "erasure/audit_journal.h"
#include "erasure/audit_receipts.h"
#include "recovery/audit_verify.h"

#define STATEMENT_NS (600 * NS_PER_S)

enum err audit_log_read(struct command_context *c)
{
    if (strcmp(word(c, 0), "verify") != 0)
        return why_set(&c->why, ERR_INPUT, "say audit verify");
    return OK;
}

static void print_finding(void *context, const char *finding)
{
    (void)context;
    printf("%s\n", finding);
}

static int64_t deadline(void)
{
    return clock_ns() + STATEMENT_NS;
}

/* Without a journal, heads that were removed with everything under them are not missed. */
static enum err compare_journal(struct command_context *c, struct log_verifier *v)
{
    const char *from = option(c, "--journal") ? option(c, "--journal") : c->settings->journal;
    int64_t heads;
    enum err e = audit_journal(v, from, &heads, &c->why);
    if (e == ERR_MISSING && !option(c, "--journal")) {
        printf("no journal at %s to compare with: the newest heads may have been removed with everything under them\n",
               from);
        c->why.text[0] = '\0';
        return OK;
    }
    if (!e)
        printf("%lld heads are in the journal\n", (long long)heads);
    return e;
}

enum err audit_log_command(struct command_context *c)
{
    struct proof_keys *keys = arena_take(c->arena, sizeof *keys);
    if (!keys)
        return why_set(&c->why, ERR_MEMORY, "no memory");
    struct log_verifier v = {.pg = c->pg,
                             .keys = keys,
                             .retention_ms = c->settings->audit_retention_ms,
                             .deadline_ns = deadline,
                             .found = print_finding};
    enum err e = command_proof_keys(c, keys);
    if (e)
        return e;
    e = log_verify(&v);
    if (!e)
        e = audit_receipts(&v);
    if (!e)
        e = audit_verify(&v);
    if (e)
        why_set(&c->why, e, "the sealed log cannot be read (%s)", err_name(e));
    else
        e = compare_journal(c, &v);
    proof_keys_wipe(keys);
    if (e)
        return e;
    printf("%lld leaves under %lld signed heads; %lld rows gone by retention, %lld not sealed yet\n",
           (long long)v.leaves, (long long)v.heads, (long long)v.expired, (long long)v.unsealed);
    if (v.findings)
        return why_set(&c->why, ERR_INPUT, "%lld finding%s: rows are not as they were sealed", (long long)v.findings,
                       v.findings == 1 ? "" : "s");
    printf("Everything is as it was sealed.\n");
    return OK;
}
