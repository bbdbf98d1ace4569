#include "cluster/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/random.h"
#include "base/str.h"

#define DEBIAN_PROGRAMS "/usr/lib/postgresql"
#define HOMES_OF_ROOT "/var/lib/reclaim"
#define SOCKETS_IN_TMP "/tmp/reclaim-"
#define HOME_NOTE "postgres.location"
#define SOCKETS_NOTE "sockets.location"

enum err files_path(struct why *why, char *into, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int len = vsnprintf(into, size, format, args);
    va_end(args);
    return len >= 0 && (size_t)len < size ? OK : why_set(why, ERR_INPUT, "the path %.200s… is too long", into);
}

enum err files_failed(struct why *why, const char *action, const char *path)
{
    return why_set(why, ERR_SYSTEM, "cannot %s %s: %s", action, path, strerror(errno));
}

static bool are_root(void)
{
    return geteuid() == 0;
}

bool files_sync(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool synced = fsync(fd) == 0;
    (void)close(fd);
    return synced;
}

/* Writes one line to a file, replacing it atomically. */
static enum err write_note(const char *folder, const char *name, const char *line, struct why *why)
{
    char path[PATH_MAX], temporary[PATH_MAX];
    enum err e;
    if ((e = files_path(why, path, sizeof path, "%s/%s", folder, name)) ||
        (e = files_path(why, temporary, sizeof temporary, "%s.new", path)))
        return e;
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return files_failed(why, "write", temporary);
    bool written = dprintf(fd, "%s\n", line) > 0 && fsync(fd) == 0;
    written = close(fd) == 0 && written;
    if (!written || rename(temporary, path) != 0 || !files_sync(folder))
        return files_failed(why, "write", path);
    return OK;
}

static enum err read_note(const char *folder, const char *name, char *line, size_t size)
{
    char path[PATH_MAX];
    FILE *file = files_path(NULL, path, sizeof path, "%s/%s", folder, name) == OK ? fopen(path, "re") : NULL;
    if (file == NULL)
        return ERR_MISSING;
    bool got = fgets(line, (int)size, file) != NULL;
    (void)fclose(file);
    if (!got)
        return ERR_MISSING;
    line[strcspn(line, "\n")] = '\0';
    return line[0] == '/' ? OK : ERR_MISSING;
}

static enum err find_postgres_user(struct runner *ret, struct why *why)
{
    struct passwd entry, *found = NULL;
    char buffer[4096];
    if (getpwnam_r("postgres", &entry, buffer, sizeof buffer, &found) != 0 || found == NULL)
        return why_set(why, ERR_MISSING,
                       "PostgreSQL refuses to run as root and there is no user postgres to run it: install PostgreSQL, "
                       "start as an ordinary user, or set RECLAIM_DATABASE_URL");
    *ret = (struct runner){entry.pw_uid, entry.pw_gid, true};
    return OK;
}

static enum err make_parents(const char *path, struct why *why)
{
    char parent[PATH_MAX];
    enum err e = files_path(why, parent, sizeof parent, "%s", path);
    if (e)
        return e;
    for (char *at = parent + 1; (at = strchr(at, '/')) != NULL; *at++ = '/') {
        *at = '\0';
        if (mkdir(parent, 0755) != 0 && errno != EEXIST)
            return files_failed(why, "create the directory", parent);
    }
    return OK;
}

static enum err make_data_dir(const char *data_dir, struct why *why)
{
    enum err e = make_parents(data_dir, why);
    if (e)
        return e;
    if (mkdir(data_dir, 0700) != 0)
        return errno == EEXIST ? OK : files_failed(why, "create the data directory", data_dir);
    struct runner postgres = {0};
    if (!are_root() || find_postgres_user(&postgres, NULL) != OK)
        return OK;
    /* The user postgres gets search permission, to reach the cluster, and no other. */
    if (chown(data_dir, (uid_t)-1, postgres.gid) != 0 || chmod(data_dir, 0710) != 0)
        return files_failed(why, "let the user postgres enter", data_dir);
    return OK;
}

static enum err lock_data_dir(struct cluster_files *f, struct why *why)
{
    char path[PATH_MAX];
    enum err e = files_path(why, path, sizeof path, "%s/postgres.lock", f->data_dir);
    if (e)
        return e;
    f->lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (f->lock < 0)
        return files_failed(why, "open", path);
    if (flock(f->lock, LOCK_EX | LOCK_NB) != 0) {
        char owner[16] = "";
        ssize_t got = errno == EWOULDBLOCK ? pread(f->lock, owner, sizeof owner - 1, 0) : -1;
        if (got < 0)
            return files_failed(why, "lock", path);
        owner[strcspn(owner, "\n")] = '\0';
        return why_set(why, ERR_FULL,
                       "another process (id %s) already runs the database in %s: stop it, give this one another "
                       "RECLAIM_DATA_DIR, or set RECLAIM_DATABASE_URL for both",
                       owner[0] ? owner : "not known yet", f->data_dir);
    }
    /* Root may start another user's cluster; that user must be able to take the lock again later. */
    struct stat dir;
    if (are_root() && (stat(f->data_dir, &dir) != 0 || fchown(f->lock, dir.st_uid, dir.st_gid) != 0))
        return files_failed(why, "change the owner of", path);
    if (ftruncate(f->lock, 0) != 0 || dprintf(f->lock, "%d\n", (int)getpid()) < 0)
        return files_failed(why, "write", path);
    return OK;
}

static enum err name_home(struct cluster_files *f, bool *ret_elsewhere, struct why *why)
{
    *ret_elsewhere = read_note(f->data_dir, HOME_NOTE, f->home, sizeof f->home) == OK;
    return *ret_elsewhere ? OK : files_path(why, f->home, sizeof f->home, "%s/postgres", f->data_dir);
}

static enum err name_contents(struct cluster_files *f, struct why *why)
{
    enum err e = files_path(why, f->data, sizeof f->data, "%s/data", f->home);
    return e ? e : files_path(why, f->log, sizeof f->log, "%s/server.log", f->home);
}

/* A cluster runs as the owner of its files; a new one as the current user or, for root, as the user postgres. */
static enum err find_runner(struct cluster_files *f, struct why *why)
{
    struct stat home;
    bool exists = lstat(f->home, &home) == 0;
    if (!exists && errno != ENOENT)
        return files_failed(why, "stat", f->home);
    if (are_root()) {
        if (!exists || home.st_uid == 0)
            return find_postgres_user(&f->runner, why);
        f->runner = (struct runner){home.st_uid, home.st_gid, true};
        return OK;
    }
    f->runner = (struct runner){geteuid(), getegid(), false};
    if (exists && home.st_uid != f->runner.uid)
        return why_set(why, ERR_INPUT, "%s belongs to another user (id %u): start as that user or as root", f->home,
                       (unsigned)home.st_uid);
    return OK;
}

/* When the user postgres cannot access root's data directory, the cluster is created where it can. */
static enum err move_home_if_inaccessible(struct cluster_files *f, struct why *why)
{
    if (runner_can_enter(&f->runner, f->data_dir))
        return OK;
    struct stat home;
    if (lstat(f->home, &home) == 0)
        return why_set(why, ERR_INPUT,
                       "the user who runs PostgreSQL (id %u) can no longer reach the database in %s: let it pass "
                       "through the folders on the way there (chmod o+x)",
                       (unsigned)f->runner.uid, f->home);
    char id[37];
    random_uuid(id);
    enum err e = files_path(why, f->home, sizeof f->home, HOMES_OF_ROOT "/%s", id);
    if (e)
        return e;
    if (mkdir(HOMES_OF_ROOT, 0755) != 0 && errno != EEXIST)
        return files_failed(why, "create", HOMES_OF_ROOT);
    return write_note(f->data_dir, HOME_NOTE, f->home, why); /* before the folder, which could not be found otherwise */
}

/* Private to the runner; keeps an existing folder. */
static enum err make_folder(const struct runner *runner, const char *path, struct why *why)
{
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return files_failed(why, "create", path);
    if (runner->changes && lchown(path, runner->uid, runner->gid) != 0)
        return files_failed(why, "change the owner of", path);
    return OK;
}

static bool programs_in(struct cluster_files *f, const char *folder)
{
    char link[PATH_MAX];
    if (files_path(NULL, link, sizeof link, "%s/postgres", folder) != OK || realpath(link, f->postgres) == NULL)
        return false;
    int folder_len = (int)(strrchr(f->postgres, '/') - f->postgres);
    return files_path(NULL, f->initdb, sizeof f->initdb, "%.*s/initdb", folder_len, f->postgres) == OK &&
           access(f->postgres, X_OK) == 0 && access(f->initdb, X_OK) == 0;
}

static bool programs_of_version(struct cluster_files *f, int64_t major)
{
    char folder[sizeof(DEBIAN_PROGRAMS) + 32];
    return files_path(NULL, folder, sizeof folder, DEBIAN_PROGRAMS "/%d/bin", (int)major) == OK &&
           programs_in(f, folder);
}

static bool programs_on_path(struct cluster_files *f)
{
    struct str rest = str_of(getenv("PATH")), folder;
    char z[PATH_MAX];
    while (rest.at != NULL && str_split(&rest, ':', &folder))
        if (str_starts(folder, STR("/")) && str_copy(folder, z, sizeof z) == OK && programs_in(f, z))
            return true;
    return false;
}

static bool programs_newest(struct cluster_files *f)
{
    DIR *versions = opendir(DEBIAN_PROGRAMS);
    if (versions == NULL)
        return false;
    int64_t newest = 0, major;
    for (const struct dirent *entry; (entry = readdir(versions)) != NULL;)
        if (str_to_i64(str_of(entry->d_name), 1, 999, &major) == OK && major > newest && programs_of_version(f, major))
            newest = major;
    (void)closedir(versions);
    return newest > 0 && programs_of_version(f, newest);
}

static enum err find_programs(struct cluster_files *f, struct why *why)
{
    /* An existing cluster needs the programs of its own major version. */
    char path[PATH_MAX], version[16];
    int64_t major;
    if (files_have_cluster(f) && files_path(NULL, path, sizeof path, "%s/PG_VERSION", f->data) == OK) {
        FILE *file = fopen(path, "re");
        bool got = file != NULL && fgets(version, sizeof version, file) != NULL;
        if (file != NULL)
            (void)fclose(file);
        if (got && str_to_i64(str_trim(str_of(version)), 1, 999, &major) == OK && programs_of_version(f, major))
            return OK;
    }
    if (programs_on_path(f) || programs_newest(f))
        return OK;
    return why_set(why, ERR_MISSING,
                   "there is no PostgreSQL here (no postgres and initdb on PATH or under " DEBIAN_PROGRAMS
                   "): install it, or set RECLAIM_DATABASE_URL");
}

enum err files_find(struct cluster_files *f, const char *data_dir, struct why *why)
{
    *f = (struct cluster_files){.lock = -1};
    if (realpath(data_dir, f->data_dir) == NULL)
        return errno == ENOENT ? why_set(why, ERR_MISSING, "there is no data directory %s", data_dir)
                               : files_failed(why, "enter", data_dir);
    if (access(f->data_dir, X_OK) != 0)
        return files_failed(why, "enter", f->data_dir);
    bool elsewhere;
    enum err e = name_home(f, &elsewhere, why);
    return e ? e : name_contents(f, why);
}

enum err files_lock(struct cluster_files *f, const char *data_dir, struct why *why)
{
    *f = (struct cluster_files){.lock = -1};
    bool elsewhere;
    enum err e;
    if ((e = make_data_dir(data_dir, why)))
        return e;
    if (realpath(data_dir, f->data_dir) == NULL)
        return files_failed(why, "enter", data_dir);
    if ((e = lock_data_dir(f, why)) || (e = name_home(f, &elsewhere, why)) || (e = find_runner(f, why)))
        return e;
    if (f->runner.changes && !elsewhere && (e = move_home_if_inaccessible(f, why)))
        return e;
    if ((e = make_folder(&f->runner, f->home, why)) || (e = name_contents(f, why)))
        return e;
    return find_programs(f, why);
}

void files_unlock(struct cluster_files *f)
{
    if (f->lock >= 0)
        (void)close(f->lock);
    f->lock = -1;
}

bool files_have_cluster(const struct cluster_files *f)
{
    struct stat data;
    return stat(f->data, &data) == 0;
}

/* Paths of these characters need no quoting, neither for the server nor in a URL. */
static bool usable_for_sockets(const char *path)
{
    return strlen(path) <= SOCKETS_PATH_MAX &&
           strspn(path, "/._-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == strlen(path);
}

/* Any user can write to /tmp: only a private folder that the runner owns is used again. */
static bool is_own_folder(const struct cluster_files *f, const char *path)
{
    struct stat folder;
    return str_starts(str_of(path), STR(SOCKETS_IN_TMP)) && lstat(path, &folder) == 0 && S_ISDIR(folder.st_mode) &&
           folder.st_uid == f->runner.uid && (folder.st_mode & 07777) == 0700;
}

enum err files_open_sockets(struct cluster_files *f, struct why *why)
{
    char path[PATH_MAX];
    enum err e = files_path(why, path, sizeof path, "%s/sockets", f->home);
    if (e)
        return e;
    if (usable_for_sockets(path)) {
        e = str_copy(str_of(path), f->sockets, sizeof f->sockets);
        return e ? e : make_folder(&f->runner, f->sockets, why);
    }
    if (read_note(f->home, SOCKETS_NOTE, f->sockets, sizeof f->sockets) == OK && is_own_folder(f, f->sockets))
        return OK;
    (void)snprintf(f->sockets, sizeof f->sockets, SOCKETS_IN_TMP "XXXXXX");
    if (mkdtemp(f->sockets) == NULL)
        return files_failed(why, "create", f->sockets);
    if (f->runner.changes && lchown(f->sockets, f->runner.uid, f->runner.gid) != 0)
        return files_failed(why, "change the owner of", f->sockets);
    return write_note(f->home, SOCKETS_NOTE, f->sockets, why);
}

void files_close_sockets(const struct cluster_files *f)
{
    char note[PATH_MAX];
    if (!is_own_folder(f, f->sockets))
        return;
    (void)rmdir(f->sockets);
    if (files_path(NULL, note, sizeof note, "%s/" SOCKETS_NOTE, f->home) == OK)
        (void)unlink(note);
}
