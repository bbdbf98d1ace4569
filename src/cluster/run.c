#include "cluster/run.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* The programs do not inherit our environment, which may hold secrets and PG* variables of another server. */
static const char *const environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TZ=UTC", NULL};

/* The functions from here to exec run in the child of a multi-threaded process: async-signal-safe calls only. */

static bool switch_user(const struct runner *runner)
{
    if (!runner->changes)
        return true;
    return setgroups(0, NULL) == 0 && setgid(runner->gid) == 0 && setuid(runner->uid) == 0;
}

/* Ignored signals stay ignored after exec, and PostgreSQL's programs expect the defaults. */
static void reset_signals(void)
{
    for (int signal_number = 1; signal_number < NSIG; signal_number++)
        (void)signal(signal_number, SIG_DFL); /* fails for SIGKILL, SIGSTOP and glibc's internal signals */
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static bool connect_descriptors(const struct program *program)
{
    int in = program->in >= 0 ? program->in : open("/dev/null", O_RDONLY | O_CLOEXEC);
    int out = open(program->log, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (in < 0 || out < 0)
        return false;
    /* If one of them is below 3, the first dup2() could overwrite the other. */
    in = fcntl(in, F_DUPFD_CLOEXEC, 3);
    out = fcntl(out, F_DUPFD_CLOEXEC, 3);
    if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0)
        return false;
    return close_range(3, ~0U, 0) == 0;
}

static _Noreturn void exec_program(const struct runner *runner, const struct program *program, pid_t parent)
{
    reset_signals();
    (void)setsid(); /* a terminal's ctrl-C must reach only the owner */
    if (!switch_user(runner))
        _exit(126);
    /* After setuid(), which resets it. If the parent has already ended, no signal would be sent. */
    if (prctl(PR_SET_PDEATHSIG, program->death_signal) != 0 || getppid() != parent)
        _exit(126);
    (void)umask(077);
    if (chdir("/") == 0 && connect_descriptors(program))
        (void)execve(program->argv[0], (char *const *)program->argv, (char *const *)environment);
    _exit(127);
}

pid_t program_start(const struct runner *runner, const struct program *program)
{
    pid_t parent = getpid();
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* no handler of ours may run in the child */
    pid_t pid = fork();
    if (pid == 0)
        exec_program(runner, program, parent);
    int failed = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = failed;
    return pid;
}

bool program_ended(pid_t pid, int64_t deadline_ns, int *ret_status)
{
    for (;;) {
        int status = 0;
        pid_t ended = waitpid(pid, &status, WNOHANG);
        if (ended == pid || (ended < 0 && errno == ECHILD)) { /* ECHILD: SIGCHLD is ignored, or it was already reaped */
            *ret_status = status;
            return true;
        }
        int ms = clock_ms_until(deadline_ns, 10);
        if (ms == 0)
            return false;
        struct timespec pause = {.tv_nsec = (long)ms * 1000000L};
        (void)nanosleep(&pause, NULL);
    }
}

enum err program_finish(pid_t pid, int64_t deadline_ns)
{
    int status = 0;
    if (program_ended(pid, deadline_ns, &status))
        return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? OK : ERR_SYSTEM;
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    return ERR_TIMEOUT;
}

bool runner_can_enter(const struct runner *runner, const char *path)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(switch_user(runner) && access(path, X_OK) == 0 ? 0 : 1);
    return pid > 0 && program_finish(pid, INT64_MAX) == OK;
}
