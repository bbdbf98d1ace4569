/* Requests that only read: one object by the id in the path, or a page of a list. */
#ifndef API_READ_H
#define API_READ_H

#include "base/defs.h"
#include "http/request.h"
#include "pg/pool.h"

/* Answers 200 with the object that `ask` finds ($1 an id → object:text …), or 404 with this code and message, which are constants. */
void read_one(struct request *rq, struct pool *pool, const struct statement *ask, const char *id, const char *code,
              const char *message);
/* The same with arguments of the request's arena, or constants. Also 404 when the object is null. */
void read_object(struct request *rq, struct pool *pool, const struct pg_call *call, const char *code,
                 const char *message);

#define PAGE_BYTES 4194304
/* The statement of a page: `rows` selects id and object, a text, in the order of id. Of large objects no more are read than
 * show that the page is full. */
#define PAGE_SQL(rows)                                                                                                 \
    "SELECT p.id, p.object FROM (SELECT p.id, p.object, pg_catalog.row_number() OVER w AS n,"                          \
    " pg_catalog.sum(pg_catalog.octet_length(p.object)) OVER w - pg_catalog.octet_length(p.object) AS before"          \
    " FROM (" rows                                                                                                     \
    ") p WINDOW w AS (ORDER BY p.id)) p WHERE p.n <= 2 OR p.before < " TEXT_OF(PAGE_BYTES) " ORDER BY p.id"

/* A page of a list ordered by id, from `after` and `limit` of the query. */
struct list_page {
    const char *after; /* what the page before ended with; NULL for the first */
    int64_t limit;
    const char *extra_name;      /* a further member of the answer; NULL: none */
    const struct pg_call *extra; /* its value, JSON: one row with one text; its texts are of the arena, or constants */
};
/* False after a 400 was sent. */
bool list_page_read(struct request *rq, struct list_page *ret);
/* The same for a list in another order: `after` consists of this many parts with hyphens between, a number, or a small letter
 * where `letters` has an 'l', as in "nln" for 17-c-4. */
bool list_page_read_place(struct request *rq, const char *letters, struct list_page *ret);
/* Answers {"items":[…],"next":…}. The call asks for one row more than the limit (id object:text): that shows whether
 * there is a next page. Its texts are of the request's arena, or constants. A page has at most PAGE_BYTES, but one item at
 * least. */
void read_page(struct request *rq, struct pool *pool, const struct list_page *page, const struct pg_call *call);

#endif
