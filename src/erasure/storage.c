#include "erasure/storage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "erasure/eraser.h"
#include "erasure/storage_api.h"
#include "erasure/storage_walk.h"
#include "events/receipt.h"

#define ITEMS_AT_ONCE 16
#define NOTE_NS (10 * NS_PER_S)
#define LEASE_PAUSE_NS NS_PER_S
#define REQUESTS_MAX 1000                      /* a run: then others have their turn */
#define FRUITLESS_MAX 600                      /* requests before the first deletion: names have 512 folders at most */
#define ROOTS_BYTES ((size_t)16 * 1024 * 1024) /* the folders of a customer's users */

const struct statement storage_add = {
    .name = "storage_add",
    .sql = "SELECT reclaim.storage_add($1, $2, $3, $4::bool, $5) AS lack",
    .params = 5,
    .columns = "lack:text",
};

static const struct statement promise = {
    .name = "storage_promise",
    .sql = "SELECT reclaim.storage_promise($1::int4) AS queued",
    .params = 1,
    .columns = "queued:int4",
};

static const struct statement read_folders = {
    .name = "storage_folders",
    .sql = "SELECT bucket, folder FROM reclaim.storage_folders($1::uuid, $2)",
    .params = 2,
    .columns = "bucket:text folder:text",
};

static const struct statement note_progress = {
    .name = "storage_note",
    .sql = "SELECT reclaim.storage_note($1::uuid, $2, $3::int8, $4, $5)::text AS nothing",
    .params = 5,
    .columns = "nothing:text",
};

const struct statement *const storage_statements[] = {&storage_add, &promise, &read_folders, &note_progress};
const size_t storage_statement_count = COUNT_OF(storage_statements);

struct storage {
    struct storage_api api;
    struct work_kind kind;
};

struct walk { /* as long as the item runs */
    struct storage *context;
    struct work_item *item;
    char customer_id[37], participant[PARTICIPANT_NAME_MAX + 1];
    enum { WALK_ON_WORKER, WALK_ASKING, WALK_PAUSED } phase;
    bool abandoned;

    /* What is to be erased: */
    struct arena *arena;
    struct str bucket;
    struct str *roots; /* a folder for each user */
    size_t root_count, root;
    bool wanted;

    struct storage_walk at;
    int64_t requests, erased; /* of this run */
    int64_t unnoted;          /* erased, and not in the receipt yet */

    struct storage_request request;
    void (*next)(struct walk *w); /* after the note, or the pause */
    const char *outcome;          /* of the note */
    struct storage_trouble trouble;
    struct job job;
    struct work_note note;
    struct work_timer timer;
    enum err err;
};

static void list_folder(struct walk *w);

static void walk_free(void *handed)
{
    struct walk *w = handed;
    storage_request_free(&w->request);
    arena_free(w->arena);
    storage_walk_free(&w->at);
    free(w);
}

static void finish(struct walk *w, enum work_outcome outcome, const char *reason)
{
    work_cancel(w->item->engine, &w->timer);
    work_end(w->item, outcome, reason);
}

/* On a worker */

static enum err copy_roots(struct walk *w, const struct pg_call *rows)
{
    if (!(w->roots = arena_take(w->arena, (size_t)rows->rows * sizeof *w->roots)))
        return ERR_MEMORY;
    w->bucket = arena_copy(w->arena, pg_get(rows, 0, 0));
    for (int row = 0; row < rows->rows; row++) {
        if (pg_is_null(rows, row, 1))
            continue; /* no login went with the customer */
        struct str *root = &w->roots[w->root_count++];
        if (!(*root = arena_copy(w->arena, pg_get(rows, row, 1))).at)
            return ERR_MEMORY;
    }
    return w->bucket.at ? OK : ERR_MEMORY;
}

static enum err run_read(struct job *job, struct pg *pg)
{
    struct walk *w = OWNER_OF(job, struct walk, job);
    struct pg_call rows = {.ask = &read_folders, .args = {pg_text(w->customer_id), pg_text(w->participant)}};
    enum err e = pg_ask(pg, &rows, job->deadline_ns);
    w->wanted = !e && rows.rows > 0;
    w->root_count = 0;
    return w->wanted ? copy_roots(w, &rows) : e;
}

static enum err run_note(struct job *job, struct pg *pg)
{
    struct walk *w = OWNER_OF(job, struct walk, job);
    bool failed = *w->outcome == 'f' || *w->outcome == 's';
    struct pg_call call = {.ask = &note_progress,
                           .args = {pg_text(w->customer_id), pg_text(w->participant), pg_i64(w->unnoted),
                                    pg_text(w->outcome), pg_text_or_null(failed ? w->trouble.words : NULL)}};
    return pg_ask(pg, &call, job->deadline_ns);
}

static void worker_done(struct job *job, enum err e)
{
    struct walk *w = OWNER_OF(job, struct walk, job);
    w->err = e;
    work_post(w->item->engine, &w->note);
}

/* On the engine's thread */

static void worker_answered(struct work_note *note)
{
    struct walk *w = OWNER_OF(note, struct walk, note);
    if (w->err)
        finish(w, w->abandoned ? WORK_RETURNED : WORK_AGAIN, err_name(w->err));
    else
        w->next(w);
}

static void submit(struct walk *w, enum err (*run)(struct job *, struct pg *), void (*next)(struct walk *))
{
    w->phase = WALK_ON_WORKER;
    w->next = next;
    w->job = (struct job){.run = run, .done = worker_done, .deadline_ns = clock_ns() + NOTE_NS};
    enum err e = pool_submit(work_pool(w->item->engine), &w->job);
    if (e) {
        w->err = e;
        worker_answered(&w->note);
    }
}

static void ended(struct walk *w)
{
    finish(w, WORK_DONE, NULL);
}

static void end_with(struct walk *w, const char *outcome)
{
    bool failed = *outcome == 'f' || *outcome == 's';
    w->outcome = outcome;
    if (failed)
        log_warn("cascade failed", F_STR("participant", w->participant), F_STR("error", w->trouble.words));
    eraser_count(w->participant, 0, strcmp(outcome, "done") == 0, failed);
    submit(w, run_note, ended);
}

/* For every customer: the participant pauses. */
static void stop(struct walk *w)
{
    end_with(w, "stopped");
}

static void fail(struct walk *w, const char *words)
{
    (void)snprintf(w->trouble.words, sizeof w->trouble.words, "%s", words);
    end_with(w, "failed");
}

static void pause_over(struct work_timer *timer)
{
    struct walk *w = OWNER_OF(timer, struct walk, timer);
    w->next(w);
}

/* Before each request. True when it may be sent; otherwise the walk is over, or `again` is called later. */
static bool may_ask(struct walk *w, void (*again)(struct walk *))
{
    if (w->abandoned) {
        finish(w, WORK_RETURNED, NULL);
        return false;
    }
    switch (work_lease(w->item, STORAGE_CALL_NS)) {
    case WORK_LOST:
        finish(w, WORK_DROPPED, NULL);
        return false;
    case WORK_WAIT:
        w->phase = WALK_PAUSED;
        w->next = again;
        work_at(w->item->engine, &w->timer, clock_ns() + LEASE_PAUSE_NS);
        return false;
    case WORK_MINE:
        break;
    }
    w->phase = WALK_ASKING;
    w->requests++;
    return true;
}

static struct walk *walk_of(struct client_call *call)
{
    return OWNER_OF(OWNER_OF(call, struct storage_request, call), struct walk, request);
}

/* Folder by folder */

static void end_of_walk(struct walk *w, enum err e)
{
    fail(w, e == ERR_INPUT      ? "the Storage API answers with something that is no list of objects"
            : e == ERR_CONFLICT ? "the Storage API lists the same objects again and again"
            : e == ERR_FULL     ? "folders are nested too deep"
                                : "there is no memory for a page of objects");
}

static void begin_root(struct walk *w)
{
    if (w->root == w->root_count) {
        end_with(w, "done");
        return;
    }
    enum err e = storage_walk_begin(&w->at, w->roots[w->root]);
    if (e)
        end_of_walk(w, e);
    else
        list_folder(w);
}

/* The next user's folder; the same once more while something stays and something went: names that differ only in case, or in
 * characters that the API's search takes for any, are listed beside each other until they are deleted. */
static void root_done(struct walk *w)
{
    if (w->at.left && w->at.deleted == 0) {
        fail(w, "the Storage API lists objects that it does not delete");
        return;
    }
    w->root += !w->at.left;
    begin_root(w);
}

static void advance(struct walk *w)
{
    bool over = false;
    if (w->abandoned) {
        finish(w, WORK_RETURNED, NULL);
        return;
    }
    if (w->requests > REQUESTS_MAX && w->erased > 0) {
        end_with(w, "later");
        return;
    }
    if (w->requests > FRUITLESS_MAX && w->erased == 0) {
        fail(w, "the Storage API lists more and more objects, and deletes none");
        return;
    }
    enum err e = storage_walk_on(&w->at, &over);
    if (e)
        end_of_walk(w, e);
    else if (over)
        root_done(w);
    else
        list_folder(w);
}

static void progress_noted(struct walk *w)
{
    w->unnoted = 0;
    advance(w);
}

static void page_deleted(struct client_call *call)
{
    struct walk *w = walk_of(call);
    int64_t deleted;
    if (storage_failed(call, w->bucket, &w->trouble)) {
        stop(w);
        return;
    }
    enum err e = storage_walk_took(&w->at, call->answer, &deleted);
    if (e) {
        end_of_walk(w, e);
        return;
    }
    w->erased += deleted;
    w->unnoted += deleted;
    eraser_count(w->participant, deleted, 0, 0);
    w->outcome = "going";
    if (deleted)
        submit(w, run_note, progress_noted);
    else
        advance(w);
}

static void delete_page(struct walk *w)
{
    if (may_ask(w, delete_page))
        storage_delete(&w->context->api, work_client(w->item->engine), &w->request, w->bucket, w->at.names,
                       w->at.name_count, page_deleted);
}

static void page_listed(struct client_call *call)
{
    struct walk *w = walk_of(call);
    if (storage_failed(call, w->bucket, &w->trouble)) {
        stop(w);
        return;
    }
    enum err e = storage_walk_take(&w->at, call->answer);
    if (e)
        end_of_walk(w, e);
    else if (w->at.name_count)
        delete_page(w);
    else
        advance(w);
}

static void list_folder(struct walk *w)
{
    if (may_ask(w, list_folder))
        storage_list(&w->context->api, work_client(w->item->engine), &w->request, w->bucket,
                     storage_walk_folder(&w->at), storage_walk_offset(&w->at), page_listed);
}

/* Beginning */

/* A bucket that is not there, or that the key may not see, lists nothing: it is asked for first, so that nothing found is not
 * taken for nothing left. */
static void bucket_answered(struct client_call *call)
{
    struct walk *w = walk_of(call);
    if (storage_failed(call, w->bucket, &w->trouble))
        stop(w);
    else
        begin_root(w);
}

static void ask_bucket(struct walk *w)
{
    if (may_ask(w, ask_bucket))
        storage_ask_bucket(&w->context->api, work_client(w->item->engine), &w->request, w->bucket, bucket_answered);
}

static void roots_read(struct walk *w)
{
    if (!w->wanted) {
        ended(w);
    } else if (w->root_count == 0) {
        end_with(w, "done");
    } else if (!w->context->api.url) {
        (void)snprintf(w->trouble.words, sizeof w->trouble.words,
                       "RECLAIM_STORAGE_URL and RECLAIM_STORAGE_KEY are not set");
        stop(w);
    } else {
        ask_bucket(w);
    }
}

static enum err read_payload(struct walk *w)
{
    AUTO(json) json_t *payload = json_read_object(w->item->payload, NULL);
    struct str id, participant;
    if (!payload || json_get_str(payload, "customer_id", &id) || !str_is_uuid(id) ||
        json_get_str(payload, "participant", &participant))
        return ERR_INPUT;
    enum err e = str_copy(id, w->customer_id, sizeof w->customer_id);
    return e ? e : str_copy(participant, w->participant, sizeof w->participant);
}

static void start(struct work_item *item)
{
    struct walk *w = calloc(1, sizeof *w);
    if (w)
        w->arena = arena_new(4096, ROOTS_BYTES);
    if (!w || !w->arena) {
        free(w);
        work_end(item, WORK_AGAIN, "no memory");
        return;
    }
    item->handed = w;
    w->context = item->kind->context;
    w->item = item;
    w->at = storage_walk_new();
    w->note.run = worker_answered;
    w->timer.due = pause_over;
    if (read_payload(w))
        finish(w, WORK_DEAD, "the payload names no customer and participant");
    else
        submit(w, run_read, roots_read);
}

/* A job in the pool ends first; what comes next then finds the walk abandoned. */
static void abandon(struct work_item *item)
{
    struct walk *w = item->handed;
    w->abandoned = true;
    if (w->phase == WALK_ON_WORKER)
        return;
    if (w->phase == WALK_ASKING)
        client_cancel(work_client(item->engine), &w->request.call);
    finish(w, WORK_RETURNED, NULL);
}

struct storage *storage_new(const char *url, const char *key)
{
    struct storage *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    if (storage_api_open(&s->api, url, key)) {
        storage_free(s);
        return NULL;
    }
    s->kind = (struct work_kind){.name = STORAGE_KIND,
                                 .tries_max = 1000, /* what fails is noted, and queued again by the leader */
                                 .pause_first_ns = NS_PER_S,
                                 .pause_most_ns = 60 * NS_PER_S,
                                 .context = s,
                                 .start = start,
                                 .abandon = abandon,
                                 .forget = walk_free};
    return s;
}

void storage_free(struct storage *s)
{
    if (!s)
        return;
    storage_api_close(&s->api);
    free(s);
}

const struct work_kind *storage_kind(struct storage *s)
{
    return &s->kind;
}

enum err storage_queue(struct pg *pg, int64_t deadline_ns, int64_t *ret_queued)
{
    struct pg_call call = {.ask = &promise, .args = {pg_i64(ITEMS_AT_ONCE)}};
    enum err e = pg_ask(pg, &call, deadline_ns);
    *ret_queued = e ? 0 : pg_get_i64(&call, 0, 0);
    return e;
}
