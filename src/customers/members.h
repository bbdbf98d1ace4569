/* Members: the users who act for a customer beside its owner. */
#ifndef CUSTOMERS_MEMBERS_H
#define CUSTOMERS_MEMBERS_H

#include "customers/freeze.h"

#define MEMBER_ROLE_MAX 63

struct member_change {
    enum {
        MEMBER_DONE,
        MEMBER_UNCHANGED,        /* it was one already; a role that was given is its role now */
        MEMBER_NOT_ONE,          /* to be removed, but no member of this customer */
        MEMBER_NO_CUSTOMER,      /* there is no such customer */
        MEMBER_CUSTOMER_DELETED, /* a deleted customer gets no members */
        MEMBER_NO_USER,          /* the user is not in auth.users */
    } outcome;
    struct str object;    /* the member object, as JSON, of the arena; with the first two */
    int64_t committed_ns; /* when the commit had returned */
};

/* `role` NULL: the one it has, or "member". One transaction with the audit row. */
enum err member_add(struct pg *pg, const char *customer_id, const char *user_id, const char *role,
                    const struct actor *actor, int64_t deadline_ns, struct arena *arena,
                    struct member_change *ret) MUST_CHECK;
enum err member_remove(struct pg *pg, const char *customer_id, const char *user_id, const struct actor *actor,
                       int64_t deadline_ns, struct arena *arena, struct member_change *ret) MUST_CHECK;

/* A lower-case name for the team's own programs; not "owner", which the customer's row says. */
bool member_role_is_sound(struct str role);

extern const struct statement
    members_page; /* $1 customer, $2 after or null, $3 limit → page (null: no such customer) */
extern const struct statement
    members_list; /* $1 customer, $2 after or null, $3 limit → user_id role email created_at */
extern const struct statement customers_rows;  /* as customers_list → id name email status … */
extern const struct statement customer_create; /* $1 name $2 email $3 owner or null → id object */

extern const struct statement *const member_statements[];
extern const size_t member_statement_count;

#endif
