/* Private to src/erasure: the way through the folders of a user, of which the Storage API lists a page at a time. Objects are deleted
 * as they are listed, and a folder is gone with its last object, so a page that was dealt with is asked for again, behind what stays
 * of it. Memory is a page of folder names for each level. */
#ifndef ERASURE_STORAGE_WALK_H
#define ERASURE_STORAGE_WALK_H

#include "base/arena.h"
#include "base/json.h"

struct storage_level;

struct storage_walk {
    struct buf path; /* of the current folder, with a slash at its end */
    struct storage_level *levels;
    size_t depth, capacity;
    struct buf folders; /* names that are still to be entered, each with a NUL behind it */
    struct arena *page;
    struct str *names; /* of the objects of this page, whole */
    size_t name_count;
    int64_t deleted; /* since the walk began */
    bool left;       /* objects stay: known at the end */
};

struct storage_walk storage_walk_new(void);
void storage_walk_free(struct storage_walk *w);

/* At a user's folder. ERR_MEMORY, like the others. */
enum err storage_walk_begin(struct storage_walk *w, struct str root) MUST_CHECK;
struct str storage_walk_folder(const struct storage_walk *w);
int64_t storage_walk_offset(const struct storage_walk *w);

/* What the API has listed of the current folder. Then `names` are to be deleted, if there are any. ERR_INPUT: it is no page;
 * ERR_CONFLICT: the API lists the same whatever is asked for, or what it says it has deleted. */
enum err storage_walk_take(struct storage_walk *w, struct str answer) MUST_CHECK;
/* What the API says it has deleted of `names`; an object that was not there is not in it. ERR_INPUT: it is no list. */
enum err storage_walk_took(struct storage_walk *w, struct str answer, int64_t *ret_deleted) MUST_CHECK;
/* To the folder, or the page of it, that comes next. *ret_over: the user's folder is done. ERR_FULL: nested too deep. */
enum err storage_walk_on(struct storage_walk *w, bool *ret_over) MUST_CHECK;

#endif
