/* What every monitored program tells of itself: process_* under the names Prometheus gives them, and the version. */
#ifndef SERVER_PROCESS_METRICS_H
#define SERVER_PROCESS_METRICS_H

/* Once, at start. */
void process_metrics_start(void);

#endif
