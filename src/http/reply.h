/* Private to src/http: what becomes of a reply when it leaves. */
#ifndef HTTP_REPLY_H
#define HTTP_REPLY_H

#include "http/request.h"

/* The answer leaves, or nobody is there to get it: which one it is stands from here on. */
void reply_settle(struct request *rq);

#endif
