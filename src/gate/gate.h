/* The API gate: tells the proxy in front of another server whether a request may pass. */
#ifndef GATE_GATE_H
#define GATE_GATE_H

#include "gate/authenticate.h"

/* The route's context is the struct authenticator. 200 with X-Customer-Id and X-Customer-Status, 401, 403, or 503 if
 * the customer's status cannot be read. */
void gate_handle(struct request *rq);

#endif
