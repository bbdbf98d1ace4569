/* The standard process_* metrics of Prometheus, and the version. */
#ifndef SERVER_PROCESS_METRICS_H
#define SERVER_PROCESS_METRICS_H

/* Once, at start. */
void process_metrics_start(void);

#endif
