/* /mailbox: the mails of an instance that has no provider, for demonstrations only. */
#ifndef MAIL_MAILBOX_PAGE_H
#define MAIL_MAILBOX_PAGE_H

#include "http/router.h"
#include "pg/pool.h"

struct mailbox {
    _Atomic(struct pool *) pool;
};

void mailbox_page(struct request *rq); /* HTML, newest first */
void mailbox_json(struct request *rq); /* {"items":[…]} */

#endif
