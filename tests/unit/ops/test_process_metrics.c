#include "ops/process_metrics.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../base/unit.h"
#include "base/metrics.h"

static double value_of(const char *sample)
{
    AUTO(buf) struct buf out = buf_new((size_t)1 << 20);
    metrics_render(&out);
    char line[96];
    snprintf(line, sizeof line, "\n%s ", sample);
    const char *at = buf_str(&out).at ? strstr(out.at, line) : NULL;
    if (!at)
        fail_msg("%s is missing", sample);
    return at ? strtod(at + strlen(line), NULL) : 0;
}

static int start(void **state UNUSED)
{
    process_metrics_start();
    return 0;
}

static void memory_is_resident_and_virtual(void **state UNUSED)
{
    assert_true(value_of("process_resident_memory_bytes") > 100000);
    assert_true(value_of("process_virtual_memory_bytes") > value_of("process_resident_memory_bytes"));
}

static void open_files_are_counted(void **state UNUSED)
{
    double before = value_of("process_open_fds");
    assert_true(before >= 3);
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_true(value_of("process_open_fds") == before + 1);
    close(fd);
    assert_true(value_of("process_max_fds") >= before);
}

static void cpu_time_grows(void **state UNUSED)
{
    double before = value_of("process_cpu_seconds_total");
    volatile unsigned work = 0;
    while (value_of("process_cpu_seconds_total") == before)
        for (int i = 0; i < 1000000; i++)
            work += 1;
    assert_true(value_of("process_cpu_seconds_total") > before);
}

static void the_start_lies_in_the_near_past(void **state UNUSED)
{
    /* The kernel rounds its own start to a second. */
    double age = (double)time(NULL) - value_of("process_start_time_seconds");
    assert_true(age > -3 && age < 3600);
}

static void the_version_is_a_label(void **state UNUSED)
{
    assert_true(value_of("reclaim_build_info{version=\"" RECLAIM_VERSION "\"}") == 1);
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
