#include "cluster/traces.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"

#define LOG_BYTES_MAX (10 << 20)

/* Reads the first bytes of a file as a C string; returns their number, 0 when it cannot be read. */
static size_t read_start(const char *path, char *into, size_t size)
{
    into[0] = '\0';
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return 0;
    ssize_t got = read(fd, into, size - 1);
    (void)close(fd);
    size_t len = got > 0 ? (size_t)got : 0;
    into[len] = '\0';
    return len;
}

enum err traces_postmaster(const struct cluster_files *f, struct postmaster *ret)
{
    char path[PATH_MAX], text[2 * PATH_MAX];
    if (snprintf(path, sizeof path, "%s/postmaster.pid", f->data) >= (int)sizeof path)
        return ERR_MISSING;
    struct str rest = {text, read_start(path, text, sizeof text)};
    /* Process id, data directory, start, port, socket directory, address, shared memory key, status. */
    struct str lines[8] = {0};
    for (size_t i = 0; i < COUNT_OF(lines) && str_split(&rest, '\n', &lines[i]); i++)
        ;
    struct postmaster p = {0};
    int64_t pid;
    if (lines[0].at == NULL || str_to_i64(lines[0], 1, INT32_MAX, &pid) != OK)
        return ERR_MISSING;
    p.pid = (pid_t)pid;
    if (lines[4].at != NULL && str_copy(lines[4], p.sockets, sizeof p.sockets) != OK)
        p.sockets[0] = '\0';
    p.ready = lines[7].at != NULL && str_starts(lines[7], STR("ready"));
    p.stopping = lines[7].at != NULL && str_starts(lines[7], STR("stopping"));
    *ret = p;
    return OK;
}

/* The working directory of all PostgreSQL processes is their data directory, even without a postmaster.pid. */
static bool works_in(const char *pid, const struct stat *folder)
{
    char path[64], name[32];
    struct stat cwd;
    if (snprintf(path, sizeof path, "/proc/%s/cwd", pid) >= (int)sizeof path || stat(path, &cwd) != 0 ||
        cwd.st_dev != folder->st_dev || cwd.st_ino != folder->st_ino)
        return false;
    (void)snprintf(path, sizeof path, "/proc/%.20s/comm", pid);
    return read_start(path, name, sizeof name) > 0 && strcmp(name, "postgres\n") == 0;
}

pid_t traces_process_in(const char *folder, pid_t preferred, int signal_number)
{
    struct stat wanted;
    DIR *proc = stat(folder, &wanted) == 0 ? opendir("/proc") : NULL;
    if (proc == NULL)
        return 0;
    pid_t found = 0;
    for (const struct dirent *entry; (entry = readdir(proc)) != NULL;) {
        int64_t pid;
        if (str_to_i64(str_of(entry->d_name), 1, INT32_MAX, &pid) != OK || !works_in(entry->d_name, &wanted))
            continue;
        if (found == 0 || (pid_t)pid == preferred)
            found = (pid_t)pid;
        if (signal_number != 0)
            (void)kill((pid_t)pid, signal_number);
    }
    (void)closedir(proc);
    return found;
}

pid_t traces_process(const struct cluster_files *f, int signal_number)
{
    struct postmaster postmaster;
    pid_t preferred = traces_postmaster(f, &postmaster) == OK ? postmaster.pid : 0;
    return traces_process_in(f->data, preferred, signal_number);
}

void traces_clear(const struct cluster_files *f)
{
    /* Other processes may have their process ids by now, and PostgreSQL would refuse to start because of them. */
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/postmaster.pid", f->data) < (int)sizeof path)
        (void)unlink(path);
    static const char *const of_socket[] = {".s.PGSQL.5432", ".s.PGSQL.5432.lock"};
    for (size_t i = 0; i < COUNT_OF(of_socket); i++)
        if (snprintf(path, sizeof path, "%s/%s", f->sockets, of_socket[i]) < (int)sizeof path)
            (void)unlink(path);
}

void traces_bound_log(const struct cluster_files *f)
{
    struct stat log;
    if (lstat(f->log, &log) != 0 || !S_ISREG(log.st_mode) || log.st_size <= LOG_BYTES_MAX)
        return;
    /* The server opened it with O_APPEND and continues at the new end. */
    int fd = open(f->log, O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0)
        (void)close(fd);
}

off_t traces_log_end(const struct cluster_files *f)
{
    struct stat log;
    return stat(f->log, &log) == 0 ? log.st_size : 0;
}

void traces_last_message(const struct cluster_files *f, off_t since, char *into, size_t size)
{
    char tail[2048];
    into[0] = '\0';
    int fd = open(f->log, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return;
    off_t from = lseek(fd, 0, SEEK_END) - (off_t)sizeof tail;
    ssize_t got = pread(fd, tail, sizeof tail, from > since ? from : since);
    (void)close(fd);
    if (got <= 0)
        return;
    struct str rest = str_trim((struct str){tail, (size_t)got}), line, last = STR(""), fatal = {0};
    while (str_split(&rest, '\n', &line)) {
        last = line;
        const char *level = memmem(line.at, line.len, "FATAL:", 6);
        if (level != NULL)
            fatal = (struct str){level, line.len - (size_t)(level - line.at)};
    }
    if (fatal.at != NULL) /* lines about the shutdown may follow */
        last = fatal;
    (void)snprintf(into, size, "%.*s", STR_ARGS(last));
}
