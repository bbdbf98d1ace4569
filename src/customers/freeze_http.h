/* Private to src/customers: a freeze or recovery over HTTP, from the request to the answer. */
#ifndef CUSTOMERS_FREEZE_HTTP_H
#define CUSTOMERS_FREEZE_HTTP_H

#include "api/db_request.h"
#include "customers/customers.h"

/* Changes the customer on a worker, and answers. `customer_id` and `reason` (NULL for none) must live as long as the
 * request's work. */
void change_over_http(struct request *rq, struct customers *context, const char *customer_id, enum customer_event event,
                      const struct actor *actor, const char *reason);

#endif
