/* GET /mailbox.json: the mails of an instance that has no provider, for demonstrations only. */
#ifndef MAIL_MAILBOX_HTTP_H
#define MAIL_MAILBOX_HTTP_H

#include "http/router.h"
#include "pg/pool.h"

struct mailbox {
    _Atomic(struct pool *) pool;
};

void mailbox_handle(struct request *rq); /* {"items":[…]}, newest first; the page that people see is in src/pages */

#endif
