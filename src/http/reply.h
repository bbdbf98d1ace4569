/* Private to src/http: choosing the reply to send. */
#ifndef HTTP_REPLY_H
#define HTTP_REPLY_H

#include "http/request.h"

/* Called when the reply is sent or the connection has ended: alternative_reply_choose() has no effect from then on. */
void reply_make_final(struct request *rq);

#endif
