/* Billing over HTTP, for admins. A frozen account is not charged for usage during the freeze, no charge is made twice, and
 * usage from before the freeze is charged. The functions in sql/functions/billing/ decide, in the transaction that changes the account. */
#ifndef BILLING_BILLING_H
#define BILLING_BILLING_H

#include "gate/authenticate.h"

struct billing {
    _Atomic(struct pool *) pool; /* NULL until the database is ready */
};

/* Behind authenticate_guarded, for admins; the context is a struct billing. */
void charge_handle(struct request *rq, const struct caller *caller, void *billing);
void account_show_handle(struct request *rq, const struct caller *caller, void *billing);
void account_delete_handle(struct request *rq, const struct caller *caller, void *billing);
void adjust_handle(struct request *rq, const struct caller *caller, void *billing);
void adjustments_list_handle(struct request *rq, const struct caller *caller, void *billing);
void valid_balance_handle(struct request *rq, const struct caller *caller, void *billing);
void accounts_list_handle(struct request *rq, const struct caller *caller, void *billing);
void charges_list_handle(struct request *rq, const struct caller *caller, void *billing);
void subscriptions_list_handle(struct request *rq, const struct caller *caller, void *billing);
void subscribe_handle(struct request *rq, const struct caller *caller, void *billing);
void subscription_show_handle(struct request *rq, const struct caller *caller, void *billing);
void unsubscribe_handle(struct request *rq, const struct caller *caller, void *billing);

/* A duty of the leader: charges each subscription for each period that has begun, once. */
enum err subscriptions_charge_due(void *context, struct pg *pg, int64_t deadline_ns);

extern const struct statement *const billing_statements[];
extern const size_t billing_statement_count;
extern const struct statement *const billing_list_statements[];
extern const size_t billing_list_statement_count;
extern const struct statement *const subscription_statements[];
extern const size_t subscription_statement_count;

#endif
