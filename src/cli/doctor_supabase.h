/* Checks of what connects Reclaim with Supabase's services; for `reclaim doctor`. */
#ifndef CLI_DOCTOR_SUPABASE_H
#define CLI_DOCTOR_SUPABASE_H

#include "server/database.h"

/* The buckets that take part in erasures. */
void doctor_check_storage(struct pg *pg, const struct settings *s, finding_handler *each, void *context);
void doctor_check_hooks(const struct settings *s, finding_handler *each, void *context);

#endif
