#include "server/process_metrics.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../base/metric_value.h"

static int start(void **state UNUSED)
{
    process_metrics_start();
    return 0;
}

static void memory_is_resident_and_virtual(void **state UNUSED)
{
    assert_true(metric_value("process_resident_memory_bytes") > 100000);
    assert_true(metric_value("process_virtual_memory_bytes") > metric_value("process_resident_memory_bytes"));
}

static void open_files_are_counted(void **state UNUSED)
{
    double before = metric_value("process_open_fds");
    assert_true(before >= 3);
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_true(metric_value("process_open_fds") == before + 1);
    close(fd);
    assert_true(metric_value("process_max_fds") >= before);
}

static void cpu_time_grows(void **state UNUSED)
{
    double before = metric_value("process_cpu_seconds_total");
    volatile unsigned work = 0;
    while (metric_value("process_cpu_seconds_total") == before)
        for (int i = 0; i < 1000000; i++)
            work += 1;
    assert_true(metric_value("process_cpu_seconds_total") > before);
}

static void the_start_lies_in_the_near_past(void **state UNUSED)
{
    /* The kernel rounds its own start to a second. */
    double age = (double)time(NULL) - metric_value("process_start_time_seconds");
    assert_true(age > -3 && age < 3600);
}

static void the_version_is_a_label(void **state UNUSED)
{
    assert_true(metric_value("reclaim_build_info{version=\"" RECLAIM_VERSION "\"}") == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_resident_and_virtual),
        cmocka_unit_test(open_files_are_counted),
        cmocka_unit_test(cpu_time_grows),
        cmocka_unit_test(the_start_lies_in_the_near_past),
        cmocka_unit_test(the_version_is_a_label),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
