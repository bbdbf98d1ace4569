/* The generated master key: a file in the data directory that only its owner can read. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/random.h"
#include "settings/settings.h"

#define KEY_BYTES 32

/* The file of one key, in a directory that is open. */
struct key_file {
    const char *data_dir, *name;
    int dir;
};

/* The key in URL-safe base64 without padding: 43 characters and a NUL. */
#define KEY_TEXT_SIZE sodium_base64_ENCODED_LEN(KEY_BYTES, sodium_base64_VARIANT_URLSAFE_NO_PADDING)

/* Creates every missing directory of the path. As root the last one can be entered by others, since the embedded cluster
 * runs as another user. */
static enum err make_directory(const char *path, struct why *why)
{
    char part[PATH_MAX];
    if (str_copy(str_of(path), part, sizeof part))
        return why_set(why, ERR_INPUT, "RECLAIM_DATA_DIR: \"%.64s…\" is too long", path);
    mode_t closed = geteuid() == 0 ? 0711 : 0700;
    for (char *at = part + 1;; at++) {
        if (*at != '/' && *at != '\0')
            continue;
        char end = *at;
        *at = '\0';
        if (mkdir(part, end ? 0755 : closed) != 0 && errno != EEXIST)
            return why_set(why, ERR_SYSTEM, "RECLAIM_DATA_DIR: cannot make the directory \"%s\": %s", part,
                           strerror(errno));
        *at = end;
        if (!end)
            return OK;
    }
}

static enum err write_all(int fd, const char *at, size_t len)
{
    while (len > 0) {
        ssize_t put = write(fd, at, len);
        if (put < 0 && errno != EINTR)
            return ERR_SYSTEM;
        at += put > 0 ? put : 0;
        len -= put > 0 ? (size_t)put : 0;
    }
    return fsync(fd) == 0 ? OK : ERR_SYSTEM;
}

/* When root starts Reclaim on another user's data directory, that user becomes the owner of the key. */
static enum err give_to_owner_of(int dir, int fd)
{
    struct stat st;
    if (geteuid() != 0)
        return OK;
    return fstat(dir, &st) == 0 && fchown(fd, st.st_uid, st.st_gid) == 0 ? OK : ERR_SYSTEM;
}

/* Writes a temporary file, then links it to its name: the key is never seen incomplete, and of several processes that
 * create it at once the first wins. */
static enum err write_key(const struct key_file *p, const char *key)
{
    char name[64], mark[37];
    random_uuid(mark);
    snprintf(name, sizeof name, "%s.%s", p->name, mark);
    int fd = openat(p->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return ERR_SYSTEM;
    enum err e = give_to_owner_of(p->dir, fd);
    if (!e)
        e = write_all(fd, key, strlen(key));
    if (!e && linkat(p->dir, name, p->dir, p->name, 0) != 0 && errno != EEXIST)
        e = ERR_SYSTEM;
    int error = errno;
    close(fd);
    unlinkat(p->dir, name, 0);
    errno = error;
    if (!e && fsync(p->dir) != 0)
        e = ERR_SYSTEM;
    return e;
}

static enum err make_key(const struct key_file *p, struct why *why)
{
    unsigned char bytes[KEY_BYTES];
    char key[KEY_TEXT_SIZE + 1];
    random_bytes(bytes, sizeof bytes);
    sodium_bin2base64(key, KEY_TEXT_SIZE, bytes, sizeof bytes, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    key[KEY_TEXT_SIZE - 1] = '\n';
    key[KEY_TEXT_SIZE] = '\0';
    enum err e = write_key(p, key);
    if (e)
        e = why_set(why, e, "cannot make the key \"%s/%s\": %s", p->data_dir, p->name, strerror(errno));
    secret_wipe(bytes, sizeof bytes);
    secret_wipe(key, sizeof key);
    return e;
}

static enum err check_key(const struct key_file *p, int fd, char into[SECRET_KEY_MAX + 1], size_t len, struct why *why)
{
    struct stat st;
    if (fstat(fd, &st) == 0 && (st.st_mode & S_IRWXO))
        return why_set(why, ERR_INPUT, "\"%s/%s\" is open to every user of this machine; chmod 600 it", p->data_dir,
                       p->name);
    if (len > 0 && into[len - 1] == '\n')
        len--;
    if (len < SECRET_KEY_MIN || len > SECRET_KEY_MAX || memchr(into, '\0', len))
        return why_set(why, ERR_INPUT, "\"%s/%s\" does not hold a key of %d to %d characters", p->data_dir, p->name,
                       SECRET_KEY_MIN, SECRET_KEY_MAX);
    into[len] = '\0';
    return OK;
}

/* ERR_MISSING when there is no key. */
static enum err read_key(const struct key_file *p, char into[SECRET_KEY_MAX + 1], struct why *why)
{
    int fd = openat(p->dir, p->name, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return ERR_MISSING;
    if (fd < 0)
        return why_set(why, ERR_SYSTEM, "cannot read the key \"%s/%s\": %s", p->data_dir, p->name, strerror(errno));
    ssize_t got = read(fd, into, SECRET_KEY_MAX + 1);
    enum err e =
        got < 0 ? why_set(why, ERR_SYSTEM, "cannot read the key \"%s/%s\": %s", p->data_dir, p->name, strerror(errno))
                : check_key(p, fd, into, (size_t)got, why);
    close(fd);
    if (e)
        secret_wipe(into, SECRET_KEY_MAX + 1);
    return e;
}

/* Reads the key of this name and creates it first if `may_make` is set. ERR_MISSING, with `why` unset, when there is none. */
static enum err find_key(const char *data_dir, const char *name, bool may_make, char into[SECRET_KEY_MAX + 1],
                         struct why *why)
{
    enum err e = may_make ? make_directory(data_dir, why) : OK;
    if (e)
        return e;
    struct key_file place = {data_dir, name, open(data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (place.dir < 0)
        return may_make
                   ? why_set(why, ERR_SYSTEM, "RECLAIM_DATA_DIR: cannot open \"%s\": %s", data_dir, strerror(errno))
                   : ERR_MISSING;
    e = read_key(&place, into, why);
    if (e == ERR_MISSING && may_make && (e = make_key(&place, why)) == OK)
        e = read_key(&place, into, why);
    close(place.dir);
    return e;
}

enum err settings_secret_key(const struct settings *s, bool may_make, char into[SECRET_KEY_MAX + 1], struct why *why)
{
    if (s->secret_key)
        return str_copy(str_of(s->secret_key), into, SECRET_KEY_MAX + 1);
    enum err e = find_key(s->data_dir, "secret-key", may_make && !s->database_url, into, why);
    if (e == ERR_MISSING && s->database_url)
        return why_set(why, e,
                       "RECLAIM_SECRET_KEY is not set: all instances of a database need the same key of at least %d "
                       "characters; make one with: openssl rand -base64 32",
                       SECRET_KEY_MIN);
    if (e == ERR_MISSING)
        return why_set(why, e,
                       "RECLAIM_SECRET_KEY is not set, and \"%s\" holds no key: give the servers' key or their "
                       "RECLAIM_DATA_DIR",
                       s->data_dir);
    return e;
}
