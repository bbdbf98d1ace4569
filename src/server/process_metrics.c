#include "server/process_metrics.h"

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

/* The text of a file of /proc, cut to the size of the buffer; absent when it is empty. */
static struct str read_proc(const char *path, char *into, size_t size)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return (struct str){NULL, 0};
    size_t len = fread(into, 1, size, file);
    fclose(file);
    return (struct str){len ? into : NULL, len};
}

/* The number that is the nth word, from 0. */
static double nth_number(struct str text, int n)
{
    struct str word;
    int64_t number;
    for (int i = 0; str_split(&text, ' ', &word); i++)
        if (i == n)
            return str_to_i64(str_trim(word), 0, INT64_MAX, &number) == OK ? (double)number : (double)NAN;
    return (double)NAN;
}

static double pages_in_bytes(int place)
{
    char buffer[256];
    return nth_number(read_proc("/proc/self/statm", buffer, sizeof buffer), place) * (double)sysconf(_SC_PAGESIZE);
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

/* The kernel gives the time since it booted, in ticks. */
static double seconds_after_kernel(void)
{
    char buffer[1024];
    struct str line = read_proc("/proc/self/stat", buffer, sizeof buffer);
    /* The name in the second field may contain spaces and brackets, so fields are counted after the last bracket. */
    const char *rest = line.at ? memrchr(line.at, ')', line.len) : NULL;
    if (!rest)
        return (double)NAN;
    return nth_number((struct str){rest, line.len - (size_t)(rest - line.at)}, 20) / (double)sysconf(_SC_CLK_TCK);
}

static double kernel_start_seconds(void)
{
    char line[256];
    double start = (double)NAN;
    FILE *file = fopen("/proc/stat", "re");
    if (!file)
        return start;
    /* Longer lines are read in pieces; they consist of numbers, so no piece begins with "btime ". */
    while (isnan(start) && fgets(line, sizeof line, file))
        if (str_starts(str_of(line), STR("btime ")))
            start = nth_number(str_of(line), 1);
    fclose(file);
    return start;
}

void process_metrics_start(void)
{
    gauge_set(&build_info, 1, RECLAIM_VERSION);
    gauge_set(&start_seconds, kernel_start_seconds() + seconds_after_kernel());
    counter_source(&cpu_seconds, read_cpu_seconds, NULL);
    gauge_source(&open_fds, read_open_fds, NULL);
    gauge_source(&max_fds, read_max_fds, NULL);
    gauge_source(&resident_bytes, read_resident_bytes, NULL);
    gauge_source(&virtual_bytes, read_virtual_bytes, NULL);
}
