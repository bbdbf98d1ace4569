#include "cli/doctor_supabase.h"

#include <stdio.h>

#include "base/clock.h"
#include "erasure/cascade.h"
#include "erasure/storage.h"

#define ASK_NS (5 * NS_PER_S)

void doctor_check_hooks(const struct settings *s, finding_handler *each, void *context)
{
    if (s->cooldown_ms > 0 && !s->hook_secret)
        each(context,
             &(struct finding){SEVERITY_WARNING,
                               "RECLAIM_COOLDOWN has no effect: without RECLAIM_HOOK_SECRET no hook refuses a sign-up "
                               "(docs/supabase-hooks.md)"});
    else if (s->hook_secret)
        each(context, &(struct finding){SEVERITY_OK, s->cooldown_ms > 0
                                                         ? "hooks: addresses of deleted customers cool down"
                                                         : "hooks: every sign-up is allowed, since RECLAIM_COOLDOWN is "
                                                           "off"});
}

static void check_bucket(const struct settings *s, const char *name, const char *bucket, finding_handler *each,
                         void *context)
{
    char words[200], sentence[400];
    const char *fault = !s->storage_url
                            ? "RECLAIM_STORAGE_URL and RECLAIM_STORAGE_KEY are not set"
                            : storage_fault(s->storage_url, s->storage_key, bucket, clock_ns() + ASK_NS, words);
    (void)snprintf(sentence, sizeof sentence, "%s %s: %s", fault ? "participant" : "storage", name,
                   fault ? fault : "the bucket can be reached");
    each(context, &(struct finding){fault ? SEVERITY_FAILURE : SEVERITY_OK, sentence});
}

void doctor_check_storage(struct pg *pg, const struct settings *s, finding_handler *each, void *context)
{
    struct pg_call rows = {.ask = &cascade_list};
    if (pg_ask(pg, &rows, clock_ns() + DATABASE_DEADLINE_NS))
        return; /* said before, of all participants */
    for (int i = 0; i < rows.rows; i++)
        if (pg_get_bool(&rows, i, 6) && str_eq(pg_get(&rows, i, 1), STR("storage")))
            check_bucket(s, pg_get(&rows, i, 0).at, pg_get(&rows, i, 12).at, each, context);
}
