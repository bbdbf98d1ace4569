#include "ops/process_metrics.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/metrics.h"

#ifndef RECLAIM_VERSION
#define RECLAIM_VERSION "unknown"
#endif

METRIC_GAUGE(build_info, "reclaim_build_info", "Always 1; the version is a label.", "version");
METRIC_COUNTER(cpu_seconds, "process_cpu_seconds_total", "User and system CPU time spent, in seconds.");
METRIC_GAUGE(open_fds, "process_open_fds", "Open file descriptors.");
METRIC_GAUGE(max_fds, "process_max_fds", "Most file descriptors that may be open.");
METRIC_GAUGE(resident_bytes, "process_resident_memory_bytes", "Resident memory size in bytes.");
METRIC_GAUGE(virtual_bytes, "process_virtual_memory_bytes", "Virtual memory size in bytes.");
METRIC_GAUGE(start_seconds, "process_start_time_seconds", "Start of the process in seconds since 1970.");

static double read_cpu_seconds(void *context)
{
    (void)context;
    struct rusage used;
    if (getrusage(RUSAGE_SELF, &used) != 0)
        return (double)NAN;
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static double read_open_fds(void *context)
{
    (void)context;
    DIR *dir = opendir("/proc/self/fd");
    if (!dir)
        return (double)NAN;
    int count = -1; /* the directory's own descriptor */
    for (struct dirent *entry; (entry = readdir(dir));)
        count += entry->d_name[0] != '.';
    closedir(dir);
    return count;
}

static double read_max_fds(void *context)
{
    (void)context;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return (double)NAN;
    return limit.rlim_cur == RLIM_INFINITY ? (double)INFINITY : (double)limit.rlim_cur;
}

/* The size in pages that stands at this place (0 or 1) of statm. */
static double pages_in_bytes(int place)
{
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file)
        return (double)NAN;
    unsigned long long pages[2];
    int got = fscanf(file, "%llu %llu", &pages[0], &pages[1]);
    fclose(file);
    return got == 2 ? (double)pages[place] * (double)sysconf(_SC_PAGESIZE) : (double)NAN;
}

static double read_virtual_bytes(void *context)
{
    (void)context;
    return pages_in_bytes(0);
}

static double read_resident_bytes(void *context)
{
    (void)context;
    return pages_in_bytes(1);
}

/* The kernel counts from its own start, in ticks. */
static double ticks_at_start(void)
{
    char line[1024];
    unsigned long long ticks;
    FILE *file = fopen("/proc/self/stat", "re");
    if (!file)
        return (double)NAN;
    char *got = fgets(line, sizeof line, file);
    fclose(file);
    /* The name in the second field may hold spaces and brackets, so the third starts behind the last bracket. */
    const char *rest = got ? strrchr(line, ')') : NULL;
    if (!rest ||
        sscanf(rest, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &ticks) != 1)
        return (double)NAN;
    return (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

static double kernel_start_seconds(void)
{
    char line[256];
    unsigned long long seconds;
    double start = (double)NAN;
    FILE *file = fopen("/proc/stat", "re");
    if (!file)
        return start;
    while (isnan(start) && fgets(line, sizeof line, file))
        if (sscanf(line, "btime %llu", &seconds) == 1)
            start = (double)seconds;
    fclose(file);
    return start;
}

void process_metrics_start(void)
{
    gauge_set(&build_info, 1, RECLAIM_VERSION);
    gauge_set(&start_seconds, kernel_start_seconds() + ticks_at_start());
    counter_source(&cpu_seconds, read_cpu_seconds, NULL);
    gauge_source(&open_fds, read_open_fds, NULL);
    gauge_source(&max_fds, read_max_fds, NULL);
    gauge_source(&resident_bytes, read_resident_bytes, NULL);
    gauge_source(&virtual_bytes, read_virtual_bytes, NULL);
}
