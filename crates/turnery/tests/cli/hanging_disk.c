/* Makes a disk hang: while the file HANG_WHILE exists, writes to and flushes of the database and its log do
 * not return. The first of them makes the file HANG_WHILE.seen. Preloaded by hanging_disk.rs. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int is_of_database(int fd) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return strstr(path, "/sessions.db") != NULL;
}

static void hang(int fd) {
    const char *file = getenv("HANG_WHILE");
    int error = errno;
    if (file && access(file, F_OK) == 0 && is_of_database(fd)) {
        char seen[PATH_MAX];
        snprintf(seen, sizeof seen, "%s.seen", file);
        close(open(seen, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        struct timespec pause = {0, 10 * 1000 * 1000};
        while (access(file, F_OK) == 0) nanosleep(&pause, NULL);
    }
    errno = error;
}

#define HANGING(result, name, parameters, arguments)                 \
    result name parameters {                                         \
        static result (*real) parameters;                            \
        if (!real) real = (result(*) parameters)dlsym(RTLD_NEXT, #name); \
        hang(fd);                                                    \
        return real arguments;                                       \
    }

HANGING(ssize_t, write, (int fd, const void *from, size_t size), (fd, from, size))
HANGING(ssize_t, pwrite, (int fd, const void *from, size_t size, off_t at), (fd, from, size, at))
HANGING(ssize_t, pwrite64, (int fd, const void *from, size_t size, off64_t at), (fd, from, size, at))
HANGING(int, fsync, (int fd), (fd))
HANGING(int, fdatasync, (int fd), (fd))
