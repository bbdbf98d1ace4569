/* A bounded first-in first-out queue between threads. Pushing never waits: it fails when the queue is full. */
#ifndef BASE_QUEUE_H
#define BASE_QUEUE_H

#include <stdint.h>

#include "base/err.h"

struct queue;

struct queue *queue_new(size_t capacity) MUST_CHECK;
void queue_free(struct queue *q); /* does not free items still in it */

enum err queue_push(struct queue *q, void *item) MUST_CHECK; /* ERR_FULL, ERR_CLOSED */
/* Waits until clock_ns() reaches the deadline; ERR_TIMEOUT, or ERR_CLOSED once closed and empty. */
enum err queue_pop(struct queue *q, int64_t deadline_ns, void **ret) MUST_CHECK;
void queue_close(struct queue *q); /* further pushes fail; wakes all waiting threads */
size_t queue_depth(struct queue *q);

#endif
