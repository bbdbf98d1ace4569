#include "proof/journal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "proof/journal_line.h"

#define NAME_FORMAT "%08u.jsonl"
#define NAME_LEN 14
#define FOLDER_MAX 4096

struct journal {
    char folder[FOLDER_MAX];
    int folder_fd, lock_fd;
    pthread_mutex_t mutex; /* flock() does not keep threads of one process apart */
    /* While it is locked: */
    int fd;             /* the last file; -1: none */
    unsigned number;    /* of that file; 0: none */
    off_t size;         /* of that file, up to the end of its last line */
    int64_t begun_s;    /* when its first line was written */
    struct digest tail; /* hash of the last line */
    bool has_tail;
    bool file_synced, folder_synced; /* otherwise lines, or the file's entry in the folder, may be in memory alone */
};

/* The numbers of the files, ascending; the caller free()s them. */
static enum err list_files(int folder_fd, unsigned **ret, size_t *ret_count)
{
    *ret = NULL;
    *ret_count = 0;
    int fd = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    unsigned *all = NULL;
    size_t count = 0, room = 0;
    const struct dirent *entry;
    enum err e = dir ? OK : ERR_SYSTEM;
    while (!e && (entry = readdir(dir))) {
        int64_t number;
        if (strlen(entry->d_name) != NAME_LEN || strcmp(entry->d_name + 8, ".jsonl") != 0 ||
            str_to_i64((struct str){entry->d_name, 8}, 1, 99999999, &number))
            continue;
        if (count == room) {
            unsigned *grown = reallocarray(all, room = room ? 2 * room : 64, sizeof *all);
            if (!grown)
                e = ERR_MEMORY;
            else
                all = grown;
        }
        if (!e)
            all[count++] = (unsigned)number;
    }
    if (dir)
        closedir(dir);
    else if (fd >= 0)
        close(fd);
    for (size_t i = 1; i < count; i++) /* nearly sorted, and few */
        for (size_t k = i; k > 0 && all[k - 1] > all[k]; k--) {
            unsigned swapped = all[k];
            all[k] = all[k - 1];
            all[k - 1] = swapped;
        }
    if (e)
        free(all);
    else
        *ret = all, *ret_count = count;
    return e;
}

/* With its entry in the folder above, unless this user may not open that one. */
static enum err make_one(const char *path)
{
    char above[FOLDER_MAX];
    if (mkdir(path, 0700) != 0)
        return errno == EEXIST ? OK : ERR_SYSTEM;
    if (str_copy(str_of(path), above, sizeof above))
        return ERR_SYSTEM;
    int fd = open(dirname(above), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return OK;
    enum err e = fsync(fd) == 0 ? OK : ERR_SYSTEM;
    close(fd);
    return e;
}

static enum err make_folder(const char *folder, struct why *why)
{
    char path[FOLDER_MAX];
    if (str_copy(str_of(folder), path, sizeof path))
        return why_set(why, ERR_INPUT, "RECLAIM_JOURNAL is longer than %d bytes", FOLDER_MAX - 1);
    for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        if (make_one(path) && errno != EROFS && errno != EACCES)
            break;
        *at = '/';
    }
    if (make_one(folder))
        return why_set(why, ERR_SYSTEM, "RECLAIM_JOURNAL: cannot make \"%s\": %s", folder, strerror(errno));
    return OK;
}

enum err journal_open(const char *folder, struct journal **ret, struct why *why)
{
    *ret = NULL;
    enum err e = make_folder(folder, why);
    if (e)
        return e;
    struct journal *j = calloc(1, sizeof *j);
    if (!j)
        return why_set(why, ERR_MEMORY, "no memory for the journal");
    j->fd = j->lock_fd = -1;
    pthread_mutex_init(&j->mutex, NULL);
    j->folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (j->folder_fd >= 0)
        j->lock_fd = openat(j->folder_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (str_copy(str_of(folder), j->folder, sizeof j->folder) || j->lock_fd < 0) {
        e = why_set(why, ERR_SYSTEM, "RECLAIM_JOURNAL: cannot write to \"%s\": %s", folder, strerror(errno));
        journal_close(j);
        return e;
    }
    *ret = j;
    return OK;
}

void journal_close(struct journal *j)
{
    if (!j)
        return;
    if (j->fd >= 0)
        close(j->fd);
    if (j->lock_fd >= 0)
        close(j->lock_fd);
    if (j->folder_fd >= 0)
        close(j->folder_fd);
    pthread_mutex_destroy(&j->mutex);
    free(j);
}

const char *journal_folder(const struct journal *j)
{
    return j->folder;
}

/* A file as a whole; the caller free()s it. */
static enum err read_whole(int fd, char **ret, size_t *ret_len)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return ERR_SYSTEM;
    size_t room = (size_t)st.st_size, len = 0;
    char *text = malloc(room + 1);
    if (!text)
        return ERR_MEMORY;
    while (len < room) {
        ssize_t got = pread(fd, text + len, room - len, (off_t)len);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            free(text);
            return ERR_SYSTEM;
        }
        if (got == 0)
            break;
        len += (size_t)got;
    }
    *ret = text;
    *ret_len = len;
    return OK;
}

/* Where the last line that has its end starts, and where its end is: 0 when there is none. */
static void find_last(const char *text, size_t len, size_t *ret_start, size_t *ret_end)
{
    size_t end = len;
    while (end > 0 && text[end - 1] != '\n')
        end--;
    size_t start = end ? end - 1 : 0;
    while (start > 0 && text[start - 1] != '\n')
        start--;
    *ret_start = start;
    *ret_end = end;
}

/* Reads the tail of the last file, and cuts off what has no end: it was never confirmed. */
static enum err read_tail(struct journal *j)
{
    char *text;
    size_t len;
    enum err e = read_whole(j->fd, &text, &len);
    if (e)
        return e;
    size_t start, end;
    find_last(text, len, &start, &end);
    struct journal_line first;
    const char *first_end = memchr(text, '\n', end);
    if (first_end && !journal_line_read((struct str){text, (size_t)(first_end - text)}, &first, NULL)) {
        j->begun_s = first.written_s;
        journal_line_cleanup(&first);
    }
    if (end < len && ftruncate(j->fd, (off_t)end) != 0)
        e = ERR_SYSTEM;
    j->has_tail = end > 0;
    if (end > 0)
        j->tail = digest_sha256((struct str){text + start, end - 1 - start});
    j->size = (off_t)end;
    free(text);
    return e;
}

static enum err open_file(struct journal *j, unsigned number, int flags)
{
    char name[NAME_LEN + 8];
    snprintf(name, sizeof name, NAME_FORMAT, number);
    int fd = openat(j->folder_fd, name, O_RDWR | O_CLOEXEC | flags, 0600);
    if (fd < 0)
        return ERR_SYSTEM;
    if (j->fd >= 0)
        close(j->fd);
    j->fd = fd;
    j->file_synced = j->folder_synced = false; /* whoever wrote it may have been killed before that */
    j->number = number;
    j->size = 0;
    j->begun_s = clock_wall_us() / 1000000;
    return OK;
}

/* Another process may have appended or begun a file since, and a person may have removed one. */
static enum err refresh(struct journal *j)
{
    unsigned *all, last = 0, before = 0;
    size_t count;
    struct stat st;
    enum err e = list_files(j->folder_fd, &all, &count);
    if (e)
        return e;
    if (count > 0)
        last = all[count - 1];
    if (count > 1)
        before = all[count - 2];
    free(all);
    if (last == 0) {
        if (j->fd >= 0)
            close(j->fd);
        j->fd = -1;
        j->number = 0;
        j->has_tail = false;
        return OK;
    }
    bool same = j->fd >= 0 && j->number == last && fstat(j->fd, &st) == 0 && st.st_nlink > 0 && st.st_size == j->size;
    if (same)
        return OK;
    if ((e = open_file(j, last, 0)) || (e = read_tail(j)))
        return e;
    if (!j->has_tail && before) { /* a crash left it empty */
        if ((e = open_file(j, before, 0)) || (e = read_tail(j)))
            return e;
    }
    return OK;
}

enum err journal_lock(struct journal *j, struct why *why)
{
    pthread_mutex_lock(&j->mutex);
    while (flock(j->lock_fd, LOCK_EX) != 0)
        if (errno != EINTR) {
            pthread_mutex_unlock(&j->mutex);
            return why_set(why, ERR_SYSTEM, "cannot lock the journal \"%s\": %s", j->folder, strerror(errno));
        }
    enum err e = refresh(j);
    if (e) {
        why_set(why, e, "cannot read the journal \"%s\": %s", j->folder, strerror(errno));
        journal_unlock(j);
    }
    return e;
}

void journal_unlock(struct journal *j)
{
    flock(j->lock_fd, LOCK_UN);
    pthread_mutex_unlock(&j->mutex);
}

bool journal_tail(const struct journal *j, struct digest *ret)
{
    if (j->has_tail)
        *ret = j->tail;
    return j->has_tail;
}

static enum err write_all(int fd, struct str bytes, off_t at)
{
    for (size_t done = 0; done < bytes.len;) {
        ssize_t wrote = pwrite(fd, bytes.at + done, bytes.len - done, at + (off_t)done);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return ERR_SYSTEM;
        done += (size_t)wrote;
    }
    return OK;
}

static enum err sync_all(struct journal *j)
{
    if (j->fd < 0)
        return OK;
    if (!j->file_synced && fdatasync(j->fd) != 0)
        return ERR_SYSTEM;
    j->file_synced = true;
    if (!j->folder_synced && fsync(j->folder_fd) != 0)
        return ERR_SYSTEM;
    j->folder_synced = true;
    return OK;
}

/* Lines that were found in the last file go to the disk before the next file begins. */
static enum err write_lines(struct journal *j, struct str lines)
{
    bool full = j->fd < 0 || j->size >= JOURNAL_FILE_MAX ||
                (j->size > 0 && clock_wall_us() / 1000000 - j->begun_s > JOURNAL_FILE_S);
    enum err e = full ? sync_all(j) : OK;
    if (!e && full)
        e = open_file(j, j->number + 1, O_CREAT);
    if (e)
        return e;
    j->file_synced = false;
    e = write_all(j->fd, lines, j->size);
    return e ? e : sync_all(j);
}

enum err journal_append(struct journal *j, struct str lines, struct why *why)
{
    if (lines.len == 0)
        return OK;
    enum err e = write_lines(j, lines);
    if (e) {
        int error = errno;
        if (j->fd >= 0 && ftruncate(j->fd, j->size) != 0)
            j->size = -1; /* the next lock reads it again */
        return why_set(why, e, "cannot write the journal \"%s\": %s", j->folder, strerror(error));
    }
    j->size += (off_t)lines.len;
    size_t start = lines.len - 1;
    while (start > 0 && lines.at[start - 1] != '\n')
        start--;
    j->tail = digest_sha256((struct str){lines.at + start, lines.len - 1 - start});
    j->has_tail = true;
    return OK;
}

enum err journal_sync(struct journal *j, struct why *why)
{
    enum err e = sync_all(j);
    return e ? why_set(why, e, "cannot write the journal \"%s\": %s", j->folder, strerror(errno)) : OK;
}

enum err journal_prune(struct journal *j, int64_t before_s, int64_t *ret_removed)
{
    unsigned *all;
    size_t count;
    enum err e = list_files(j->folder_fd, &all, &count);
    *ret_removed = 0;
    for (size_t i = 0; !e && i + 1 < count; i++) {
        char name[NAME_LEN + 8];
        struct stat st;
        snprintf(name, sizeof name, NAME_FORMAT, all[i]);
        if (fstatat(j->folder_fd, name, &st, 0) != 0 || st.st_mtime >= before_s)
            break;
        if (unlinkat(j->folder_fd, name, 0) != 0)
            e = ERR_SYSTEM;
        else
            ++*ret_removed;
    }
    free(all);
    return e;
}

static enum err last_of_file(int folder_fd, unsigned number, struct digest *ret)
{
    char name[NAME_LEN + 8], *text;
    size_t len, start, end;
    snprintf(name, sizeof name, NAME_FORMAT, number);
    int fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return ERR_SYSTEM;
    enum err e = read_whole(fd, &text, &len);
    close(fd);
    if (e)
        return e;
    find_last(text, len, &start, &end);
    if (end > 0)
        *ret = digest_sha256((struct str){text + start, end - 1 - start});
    free(text);
    return end > 0 ? OK : ERR_MISSING;
}

enum err journal_last(const char *folder, struct digest *ret, struct why *why)
{
    unsigned *all = NULL;
    size_t count = 0;
    int folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder_fd < 0 && errno == ENOENT)
        return ERR_MISSING;
    enum err e = folder_fd < 0 ? ERR_SYSTEM : list_files(folder_fd, &all, &count);
    if (!e)
        e = ERR_MISSING;
    for (size_t i = count; e == ERR_MISSING && i-- > 0;) /* a crash may have left the last one empty */
        e = last_of_file(folder_fd, all[i], ret);
    if (e == ERR_SYSTEM)
        why_set(why, e, "cannot read the journal \"%s\": %s", folder, strerror(errno));
    if (folder_fd >= 0)
        close(folder_fd);
    free(all);
    return e;
}

static enum err each_of_file(int fd, struct journal_place *place,
                             enum err (*each)(void *, const struct journal_place *, struct str), void *context)
{
    char *text;
    size_t len;
    enum err e = read_whole(fd, &text, &len);
    if (e)
        return e;
    place->number = 0;
    for (size_t start = 0; !e && start < len;) {
        const char *end = memchr(text + start, '\n', len - start);
        if (!end)
            break;
        place->number++;
        e = each(context, place, (struct str){text + start, (size_t)(end - text) - start});
        start = (size_t)(end - text) + 1;
    }
    free(text);
    return e;
}

enum err journal_each(const char *folder,
                      enum err (*each)(void *context, const struct journal_place *, struct str line), void *context,
                      struct why *why)
{
    int folder_fd = open(folder, O_RDONLY | O_CLOEXEC);
    unsigned *all = NULL;
    size_t count = 0;
    struct stat st;
    if (folder_fd >= 0 && fstat(folder_fd, &st) == 0 && S_ISREG(st.st_mode)) {
        struct journal_place place = {.file = "this file", .first_file = true};
        enum err e = each_of_file(folder_fd, &place, each, context);
        close(folder_fd);
        return e;
    }
    if (folder_fd < 0)
        return why_set(why, errno == ENOENT ? ERR_MISSING : ERR_SYSTEM, "cannot open the journal \"%s\": %s", folder,
                       strerror(errno));
    enum err e = list_files(folder_fd, &all, &count);
    if (e)
        why_set(why, e, "cannot read the journal \"%s\": %s", folder, strerror(errno));
    for (size_t i = 0; !e && i < count; i++) {
        char name[NAME_LEN + 8];
        snprintf(name, sizeof name, NAME_FORMAT, all[i]);
        int fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC);
        struct journal_place place = {.file = name, .first_file = i == 0};
        if (fd < 0 && errno != ENOENT) /* removed since it was listed */
            e = why_set(why, ERR_SYSTEM, "cannot read \"%s/%s\": %s", folder, name, strerror(errno));
        if (fd >= 0)
            e = each_of_file(fd, &place, each, context);
        if (fd >= 0)
            close(fd);
    }
    free(all);
    close(folder_fd);
    return e;
}
