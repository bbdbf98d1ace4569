/* Private to src/customers: a freeze or recovery asked for over HTTP, from the errand to the answer. */
#ifndef CUSTOMERS_FREEZE_HTTP_H
#define CUSTOMERS_FREEZE_HTTP_H

#include "api/db_request.h"
#include "customers/customers.h"

/* Has the pool change the customer, and answers. `customer_id` must live as long as the request's work. */
void change_over_http(struct request *rq, struct customers *context, const char *customer_id, enum customer_event event,
                      const struct actor *actor);

#endif
