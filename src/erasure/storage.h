/* Deletes the objects of deleted customers' users from Supabase Storage, through its API: folder by folder, a page at a time. The
 * leader queues a work item for each customer and bucket (storage_queue), and whichever instance claims it runs it. */
#ifndef ERASURE_STORAGE_H
#define ERASURE_STORAGE_H

#include "work/work.h"

#define STORAGE_KIND "storage"
#define STORAGE_PREFIX "{user}/" /* where a user's objects are, unless the participant says otherwise */
#define STORAGE_USER "{user}"    /* stands for the user's id */
#define STORAGE_PREFIX_MAX 500
#define STORAGE_BUCKET_MAX 100

struct storage;

/* Both NULL: the settings are not there, and the receipts say so. */
struct storage *storage_new(const char *url, const char *key) MUST_CHECK;
void storage_free(struct storage *storage);
const struct work_kind *storage_kind(struct storage *storage);

/* On the leader: queues what is due. */
enum err storage_queue(struct pg *pg, int64_t deadline_ns, int64_t *ret_queued) MUST_CHECK;

/* For `reclaim doctor`: NULL when the bucket can be used, otherwise why not, in `into`. Blocks. */
const char *storage_fault(const char *url, const char *key, const char *bucket, int64_t deadline_ns, char into[200]);

bool storage_bucket_is_sound(struct str bucket);
bool storage_prefix_is_sound(struct str prefix); /* has {user} in it, and leads nowhere else */

extern const struct statement storage_add; /* $1 name $2 bucket $3 prefix $4 past $5 label or null → lack */
extern const struct statement *const storage_statements[];
extern const size_t storage_statement_count;

#endif
