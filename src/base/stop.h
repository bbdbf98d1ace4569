/* Tells a thread to end. The descriptor is readable from stop_raise() on, so the thread can wait for it beside others. */
#ifndef BASE_STOP_H
#define BASE_STOP_H

#include <stdbool.h>

int stop_new(void); /* a descriptor, or -1 */
void stop_raise(int stop_fd);
/* Waits up to `wait_ms`; true once it is raised. */
bool stop_wait(int stop_fd, int wait_ms);
bool stop_is_raised(int stop_fd);
void stop_free(int stop_fd); /* -1 is fine */

#endif
