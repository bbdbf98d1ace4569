#include "base/restored.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/log.h"
#include "base/metrics.h"
#include "base/stop.h"

METRIC_GAUGE(restored_gauge, "reclaim_restored",
             "1 while a restored database waits for `reclaim replay-erasures`: nothing is mailed, charged or deleted.");

static atomic_bool restored, doubted;
static atomic_uint doubts;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* around changes of the descriptor */
static int fd = -1;

bool restored_is_known(void)
{
    return atomic_load(&restored);
}

void restored_note(bool now)
{
    if (atomic_exchange(&restored, now) == now)
        return;
    gauge_set(&restored_gauge, now ? 1 : 0);
    if (now)
        log_error("the database was restored from a backup: nothing is mailed, charged or deleted until the erasures "
                  "since then are replayed",
                  F_STR("needed", "reclaim replay-erasures"));
    else
        log_info("the erasures since the backup were replayed: work goes on");
    if (!now)
        restored_doubt(); /* so that the journal gets the line about it first */
}

bool restored_may_be(void)
{
    return atomic_load(&restored) || atomic_load(&doubted);
}

int restored_doubt_fd(void)
{
    pthread_mutex_lock(&lock);
    if (fd < 0)
        fd = stop_new();
    if (fd >= 0 && atomic_load(&doubted))
        stop_raise(fd);
    int found = fd;
    pthread_mutex_unlock(&lock);
    return found;
}

void restored_doubt(void)
{
    pthread_mutex_lock(&lock);
    atomic_store(&doubted, true);
    atomic_fetch_add(&doubts, 1);
    if (fd >= 0)
        stop_raise(fd);
    pthread_mutex_unlock(&lock);
}

unsigned restored_doubts(void)
{
    return atomic_load(&doubts);
}

void restored_compared(unsigned since)
{
    pthread_mutex_lock(&lock);
    if (atomic_load(&doubts) == since) {
        atomic_store(&doubted, false);
        if (fd >= 0)
            stop_clear(fd);
    }
    pthread_mutex_unlock(&lock);
}
