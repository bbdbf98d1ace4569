/* Asks a thread to stop. The descriptor becomes readable at stop_raise(), so the thread can poll it with others. */
#ifndef BASE_STOP_H
#define BASE_STOP_H

#include <stdbool.h>

int stop_new(void); /* a descriptor, or -1 */
void stop_raise(int stop_fd);
/* Waits up to `wait_ms`; true once it is raised. */
bool stop_wait(int stop_fd, int wait_ms);
bool stop_is_raised(int stop_fd);
void stop_clear(int stop_fd); /* as if it had not been raised */
void stop_free(int stop_fd);  /* -1 is allowed */

#endif
