#include "base/stop.h"

#include <poll.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

int stop_new(void)
{
    return eventfd(0, EFD_CLOEXEC);
}

void stop_raise(int stop_fd)
{
    uint64_t one = 1;
    (void)!write(stop_fd, &one, sizeof one);
}

bool stop_wait(int stop_fd, int wait_ms)
{
    struct pollfd on = {.fd = stop_fd, .events = POLLIN};
    return poll(&on, 1, wait_ms) > 0;
}

bool stop_is_raised(int stop_fd)
{
    return stop_wait(stop_fd, 0);
}

void stop_clear(int stop_fd)
{
    uint64_t raised;
    if (stop_is_raised(stop_fd))
        (void)!read(stop_fd, &raised, sizeof raised);
}

void stop_free(int stop_fd)
{
    if (stop_fd >= 0)
        close(stop_fd);
}
