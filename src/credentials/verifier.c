#include "credentials/verifier.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/queue.h"

#define THREADS_MAX 8
#define POP_NS (60 * NS_PER_S)
#define WAITING_MAX 256 /* some ten seconds of work for two cores; clients would not wait longer */

struct verifier {
    struct queue *queue;
    pthread_t threads[THREADS_MAX];
    int count;
    pthread_mutex_t lock; /* for the decoy */
    struct password_decoy decoy;
};

static struct password_decoy decoy_now(struct verifier *verifier)
{
    pthread_mutex_lock(&verifier->lock);
    struct password_decoy decoy = verifier->decoy;
    pthread_mutex_unlock(&verifier->lock);
    return decoy;
}

void verifier_set_decoy(struct verifier *verifier, const struct password_decoy *decoy)
{
    pthread_mutex_lock(&verifier->lock);
    verifier->decoy = *decoy;
    pthread_mutex_unlock(&verifier->lock);
}

static void *run_checks(void *context)
{
    struct verifier *verifier = context;
    for (;;) {
        void *item;
        enum err e = queue_pop(verifier->queue, clock_ns() + POP_NS, &item);
        if (e == ERR_CLOSED)
            return NULL;
        if (e)
            continue;
        struct verification *v = item;
        struct password_decoy decoy = decoy_now(verifier);
        v->err = password_check(v->password, v->hash, &decoy, &v->verdict);
        v->verified(v);
    }
}

struct verifier *verifier_start(int threads, struct why *why)
{
    struct verifier *verifier = calloc(1, sizeof *verifier);
    if (verifier && (verifier->queue = queue_new(WAITING_MAX))) {
        pthread_mutex_init(&verifier->lock, NULL);
        verifier->decoy = password_decoy_usual;
        while (verifier->count < threads && verifier->count < THREADS_MAX &&
               pthread_create(&verifier->threads[verifier->count], NULL, run_checks, verifier) == 0)
            verifier->count++;
        if (verifier->count > 0)
            return verifier;
    }
    if (verifier)
        queue_free(verifier->queue);
    free(verifier);
    (void)why_set(why, ERR_MEMORY, "no memory or no threads for checking passwords");
    return NULL;
}

void verifier_stop(struct verifier *verifier)
{
    if (!verifier)
        return;
    queue_close(verifier->queue);
    for (int i = 0; i < verifier->count; i++)
        pthread_join(verifier->threads[i], NULL);
    queue_free(verifier->queue);
    pthread_mutex_destroy(&verifier->lock);
    free(verifier);
}

enum err verifier_ask(struct verifier *verifier, struct verification *v)
{
    return queue_push(verifier->queue, v);
}
