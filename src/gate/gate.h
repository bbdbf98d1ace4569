/* The API gate: whether a request to somebody else's server may pass, asked by the proxy in front of it. */
#ifndef GATE_GATE_H
#define GATE_GATE_H

#include "gate/authenticate.h"

/* The route's context is the struct authenticator. 200 with X-Customer-Id and X-Customer-Status; 401, 403, or 503 when it cannot be
 * known: never 200 on doubt. */
void gate_handle(struct request *rq);

#endif
