/* Private to src/cli: what `reclaim doctor` checks of the role that connects. Each finding names the table and the statement
 * that mends it. */
#ifndef CLI_DOCTOR_ROLE_H
#define CLI_DOCTOR_ROLE_H

#include "server/database.h"

/* The end of a GRANT to this role, within a literal of SQL. */
#define TO_ME " TO ' || pg_catalog.quote_ident(current_user)"

/* The columns of auth.users that statements read, within SQL. */
#define USERS_READ                                                                                                     \
    "'id', 'email', 'encrypted_password', 'email_confirmed_at', 'last_sign_in_at', 'is_sso_user', 'is_anonymous', "    \
    "'deleted_at', 'banned_until', 'raw_app_meta_data', 'created_at'"

/* What users and schemas take. */
void doctor_check_privileges(struct pg *pg, finding_handler *each, void *context);
/* Whether second factors can be read. */
void doctor_check_login(struct pg *pg, finding_handler *each, void *context);
/* A search path that an earlier version set for a role that is not Reclaim's own. */
void doctor_check_search_path(struct pg *pg, bool repairs, finding_handler *each, void *context);

#endif
