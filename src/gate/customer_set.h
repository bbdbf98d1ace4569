/* A hash table of customers, each with its freeze: 32 bytes a slot, at most 57 bytes a customer in a large table.
 *
 * One thread writes, any number read. Readers wait for single changes only, never for the table to grow. */
#ifndef GATE_CUSTOMER_SET_H
#define GATE_CUSTOMER_SET_H

#include "base/str.h"

struct customer_id {
    uint64_t high, low;
};

/* ERR_INPUT if it is not the text of a UUID. */
enum err customer_id_parse(struct str text, struct customer_id *ret) MUST_CHECK;
void customer_id_write(struct customer_id id, char into[37]); /* in lower case */

/* What the refusal of a frozen customer says; 16 bytes. Instants are of the installation's clock, before the year 10000. */
#define FREEZE_US_MAX ((UINT64_C(1) << 62) - 1)
struct freeze {
    int64_t scheduled_us;       /* when the deletion was requested */
    uint64_t effective_us : 62; /* the promised date of the deletion */
    bool by_admin : 1;          /* the customer cannot recover itself */
    bool held : 1;              /* a legal hold: not deleted before it is lifted */
};

struct customer_set;

struct customer_set *customer_set_new(void) MUST_CHECK;
void customer_set_free(struct customer_set *set); /* NULL is fine */

bool customer_set_find(struct customer_set *set, struct customer_id id, struct freeze *ret);
bool customer_set_has(struct customer_set *set, struct customer_id id);
size_t customer_set_count(struct customer_set *set);
size_t customer_set_bytes(struct customer_set *set); /* size of the table */

/* For the writer only. ERR_MEMORY leaves the set as it was. */
enum err customer_set_put(struct customer_set *set, struct customer_id id, struct freeze freeze) MUST_CHECK;
enum err customer_set_add(struct customer_set *set, struct customer_id id) MUST_CHECK; /* where ids alone matter */
void customer_set_remove(struct customer_set *set, struct customer_id id);
/* Exchanges the contents of both atomically for readers of `set`. No other thread may use `fresh`. */
void customer_set_swap(struct customer_set *set, struct customer_set *fresh);

#endif
