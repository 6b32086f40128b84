/* Fails or kills at one file operation; preloaded (LD_PRELOAD) by benchmarks.robustness.faults.

   The orders stand on a page that all processes of a trial map (FAULTS_ORDERS names its file).
   Operations below the folder `root` are written to a log, or counted until the one is reached
   that is to fail.  A site is an operation and a pattern of the path: digits and random parts of
   names are left out, so that it is the same in every run.  */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OFF, RECORD, FAIL };

struct orders { /* as in shim.py */
    int mode, error /* 0 kills */, nth, count, fired;
    char operation[16], pattern[256], root[512], log[512];
};

static struct orders *orders;

__attribute__((constructor)) static void begin(void) {
    const char *name = getenv("FAULTS_ORDERS");
    int file = name ? (int)syscall(SYS_openat, AT_FDCWD, name, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *page = mmap(NULL, sizeof(struct orders), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    syscall(SYS_close, file);
    if (page != MAP_FAILED) orders = page;
}

static int hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }
static int digit(char c) { return c >= '0' && c <= '9'; }
static int drawn(char c) { return digit(c) || c == '_' || (c >= 'a' && c <= 'z'); }

/* Where the random end of a temporary name begins (`length` if it has none): eight characters. */
static int random_part(const char *name, int length) {
    if (name[0] != '.') return length;
    int end = length > 4 && !strncmp(name + length - 4, ".tmp", 4) ? length - 4 : length;
    int start = end - 8;
    if (start < 1 || !strchr(".-", name[start - 1])) return length;
    for (int i = start; i < end; i++)
        if (!drawn(name[i])) return length;
    return start;
}

/* The pattern of a path: digits are #, long hexadecimal numbers and random parts *. */
static void pattern_of(const char *path, char *out, int size) {
    const char *begin = path;
    int n = 0;
    while (*path && n < size - 2) {
        int length = (int)strcspn(path, "/"), random = random_part(path, length);
        for (int i = 0; i < length && n < size - 2;) {
            int run = 0, digits = 0;
            while (i + run < length && hex(path[i + run])) run++;
            while (i + digits < length && digit(path[i + digits])) digits++;
            if (path - begin == 4 && !strncmp(begin, "tmp/", 4)) { /* the system's temporary files */
                out[n++] = '*';
                i = length;
            } else if (i == random || run >= 16) {
                out[n++] = '*';
                i += run >= 16 ? run : 8;
            } else if (digits && !(i > 1 && path[i - 1] == 'h' && path[i - 2] == '.')) { /* .h5 */
                out[n++] = '#';
                i += digits;
            } else {
                out[n++] = path[i++];
            }
        }
        path += length;
        if (*path) out[n++] = *path++;
    }
    out[n] = 0;
}

static int link_of(int descriptor, char *out) {
    char name[40];
    snprintf(name, sizeof name, "/proc/self/fd/%d", descriptor);
    long n = syscall(SYS_readlinkat, AT_FDCWD, name, out, PATH_MAX - 1);
    if (n > 10 && !strncmp(out + n - 10, " (deleted)", 10)) n -= 10;
    out[n > 0 ? n : 0] = 0;
    return n > 0;
}

/* What to do before an operation: nothing (0), or fail with this error; or it kills. */
static int strike(const char *operation, const char *path) {
    size_t root = strlen(orders->root);
    if (strncmp(path, orders->root, root) || (path[root] && path[root] != '/')) return 0;
    if (orders->mode == FAIL && orders->fired && orders->error == ENOSPC)
        return strstr("open write mkdir truncate link", operation) ? ENOSPC : 0;
    char pattern[256], line[300];
    pattern_of(path[root] ? path + root + 1 : ".", pattern, sizeof pattern);
    if (orders->mode == RECORD) {
        int n = snprintf(line, sizeof line, "%s %s\n", operation, pattern);
        int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC;
        int log = (int)syscall(SYS_openat, AT_FDCWD, orders->log, flags, 0600);
        if (log >= 0 && syscall(SYS_write, log, line, n) < 0) abort();
        syscall(SYS_close, log);
        return 0;
    }
    if (strcmp(operation, orders->operation) || strcmp(pattern, orders->pattern)) return 0;
    if (__atomic_add_fetch(&orders->count, 1, __ATOMIC_SEQ_CST) != orders->nth) return 0;
    orders->fired = 1;
    if (!orders->error) kill(0, SIGKILL);
    return orders->error;
}

static int of_path(const char *operation, int folder, const char *path) {
    if (!orders || orders->mode == OFF || !path) return 0;
    int before = errno, found;
    char whole[2 * PATH_MAX] = "";
    if (path[0] != '/') {
        if (folder == AT_FDCWD ? !getcwd(whole, PATH_MAX) : !link_of(folder, whole)) return 0;
        strcat(whole, "/");
    }
    strncat(whole, path, PATH_MAX - 1);
    found = strike(operation, whole);
    errno = before;
    return found;
}

static int of_file(const char *operation, int descriptor) {
    if (!orders || orders->mode == OFF || descriptor < 3) return 0;
    int before = errno, found = 0;
    char path[PATH_MAX];
    if (link_of(descriptor, path) && path[0] == '/') found = strike(operation, path);
    errno = before;
    return found;
}

static int written(int descriptor) {
    if (!orders || orders->mode == OFF || descriptor < 3) return 0;
    int before = errno, flags = fcntl(descriptor, F_GETFL);
    errno = before;
    return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

static int creates(int flags) { return (flags & O_CREAT) || (flags & O_ACCMODE) != O_RDONLY; }

#define NEXT(name) ((typeof(&name))dlsym(RTLD_NEXT, #name))
#define STRIKE(found) \
    do { \
        int error_ = (found); \
        if (error_) { \
            errno = error_; \
            return -1; \
        } \
    } while (0)

/* Functions of one form: what is struck, and what is called then. */
#define PATH1(name, operation, parameters, folder, path, ...) \
    int name parameters { \
        STRIKE(of_path(operation, folder, path)); \
        return NEXT(name)(__VA_ARGS__); \
    }
#define FILE1(type, name, operation, parameters, ...) \
    type name parameters { \
        STRIKE(of_file(operation, fd)); \
        return NEXT(name)(__VA_ARGS__); \
    }
#define OPEN(name, parameters, folder, path, ...) \
    int name parameters { \
        va_list rest; \
        va_start(rest, flags); \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest); \
        if (creates(flags)) STRIKE(of_path("open", folder, path)); \
        return NEXT(name)(__VA_ARGS__, flags, mode); \
    }
#define FOPEN(name) \
    FILE *name(const char *path, const char *mode) { \
        int error = strpbrk(mode, "wa+") ? of_path("open", AT_FDCWD, path) : 0; \
        if (error) errno = error; \
        return error ? NULL : NEXT(name)(path, mode); \
    }

OPEN(open, (const char *path, int flags, ...), AT_FDCWD, path, path)
OPEN(open64, (const char *path, int flags, ...), AT_FDCWD, path, path)
OPEN(openat, (int at, const char *path, int flags, ...), at, path, at, path)
OPEN(openat64, (int at, const char *path, int flags, ...), at, path, at, path)
FOPEN(fopen)
FOPEN(fopen64)

FILE1(ssize_t, write, "write", (int fd, const void *data, size_t n), fd, data, n)
FILE1(ssize_t, pwrite, "write", (int fd, const void *data, size_t n, off_t at), fd, data, n, at)
FILE1(ssize_t, pwrite64, "write", (int fd, const void *data, size_t n, off64_t at), fd, data, n, at)
FILE1(ssize_t, writev, "write", (int fd, const struct iovec *v, int n), fd, v, n)
FILE1(ssize_t, pwritev, "write", (int fd, const struct iovec *v, int n, off_t at), fd, v, n, at)
FILE1(ssize_t, sendfile, "write", (int fd, int in, off_t *at, size_t n), fd, in, at, n)
FILE1(ssize_t, sendfile64, "write", (int fd, int in, off64_t *at, size_t n), fd, in, at, n)
FILE1(int, fsync, "sync", (int fd), fd)
FILE1(int, fdatasync, "sync", (int fd), fd)
FILE1(int, ftruncate, "truncate", (int fd, off_t n), fd, n)
FILE1(int, ftruncate64, "truncate", (int fd, off64_t n), fd, n)
FILE1(int, flock, "lock", (int fd, int how), fd, how)

ssize_t copy_file_range(int in, off64_t *from, int fd, off64_t *to, size_t n, unsigned flags) {
    STRIKE(of_file("write", fd));
    return NEXT(copy_file_range)(in, from, fd, to, n, flags);
}

PATH1(truncate, "truncate", (const char *path, off_t n), AT_FDCWD, path, path, n)
PATH1(rename, "rename", (const char *old, const char *new), AT_FDCWD, old, old, new)
PATH1(renameat, "rename", (int a, const char *old, int b, const char *new), a, old, a, old, b, new)
PATH1(renameat2, "rename", (int a, const char *old, int b, const char *new, unsigned flags), a, old,
      a, old, b, new, flags)
PATH1(link, "link", (const char *old, const char *new), AT_FDCWD, new, old, new)
PATH1(linkat, "link", (int a, const char *old, int b, const char *new, int flags), b, new, a, old,
      b, new, flags)
PATH1(symlink, "link", (const char *old, const char *new), AT_FDCWD, new, old, new)
PATH1(unlink, "unlink", (const char *path), AT_FDCWD, path, path)
PATH1(unlinkat, "unlink", (int at, const char *path, int flags), at, path, at, path, flags)
PATH1(remove, "unlink", (const char *path), AT_FDCWD, path, path)
PATH1(rmdir, "rmdir", (const char *path), AT_FDCWD, path, path)
PATH1(mkdir, "mkdir", (const char *path, mode_t mode), AT_FDCWD, path, path, mode)
PATH1(mkdirat, "mkdir", (int at, const char *path, mode_t mode), at, path, at, path, mode)

int close(int fd) {
    int error = written(fd) ? of_file("close", fd) : 0;
    int found = NEXT(close)(fd);
    if (error) errno = error;
    return error ? -1 : found;
}
