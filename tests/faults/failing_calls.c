/* Calls of the C library for tests, preloaded: those on files below a directory are counted, and some of them fail.
 *
 * Python, pyarrow, SQLite and the libraries in Rust all call these functions, so that no layer of a writer is left out.
 * Modes: ONCE, the n-th call fails; FULL, the first call that writes from the n-th on fails, and all that write after it;
 * LOST, the n-th call happens and its answer is an error, as on a network disk. The number of the error is chosen. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { ONCE, FULL, LOST };
enum { READS, WRITES, TIDIES };
static char root[PATH_MAX], first[PATH_MAX + 64];
static int armed, calls, number, mode, failed, error;
static unsigned char below[65536]; /* descriptors of files below the root */

void start_failing(const char *directory, int call, int how, int number_of_error) {
  snprintf(root, sizeof root, "%s/", directory);
  number = call, mode = how, error = number_of_error, calls = failed = 0, first[0] = 0, armed = 1;
}
int stop_failing(void) {
  armed = 0;
  return calls;
}
const char *first_failed(void) { return first; }

static int is_below(int folder, const char *path, char *full) {
  char base[PATH_MAX] = "", link[64];
  if (!armed || !path) return 0;
  if (path[0] != '/') {
    if (folder == AT_FDCWD) {
      if (!getcwd(base, sizeof base)) return 0;
    } else {
      snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
      if (readlink(link, base, sizeof base - 1) < 0) return 0;
    }
    strncat(base, "/", sizeof base - strlen(base) - 1);
  }
  if (strlen(base) + strlen(path) >= PATH_MAX) return 0;
  strcat(strcpy(full, base), path);
  return strncmp(full, root, strlen(root)) == 0;
}

/* Return 0 if a call is to work, 1 if it must not happen, and 2 if only its answer is to be an error. */
static int fate(const char *name, const char *path, int kind) {
  int call = __sync_add_and_fetch(&calls, 1), writes = kind == WRITES;
  int fails = mode == FULL ? number > 0 && call >= number && writes : call == number;
  if (!fails) return 0;
  if (!failed++) snprintf(first, sizeof first, "%s %s", name, path);
  errno = error;
  return mode == LOST ? 2 : 1;
}

#define REAL(name) \
  static __typeof__(&name) real; \
  if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

#define OPENS(name, parameters, arguments, folder) \
  int name parameters { \
    REAL(name); \
    mode_t bits = 0; \
    if (flags & (O_CREAT | O_TMPFILE)) { \
      va_list rest; \
      va_start(rest, flags); \
      bits = va_arg(rest, mode_t); \
      va_end(rest); \
    } \
    char full[PATH_MAX]; \
    int inside = is_below(folder, path, full), writes = flags & (O_WRONLY | O_RDWR | O_CREAT); \
    if (inside && fate("open", full, writes ? WRITES : READS)) { \
      errno = error; \
      return -1; \
    } \
    int file = real arguments; \
    if (file >= 0 && file < (int)sizeof below) below[file] = inside; \
    return file; \
  }
OPENS(open, (const char *path, int flags, ...), (path, flags, bits), AT_FDCWD)
OPENS(open64, (const char *path, int flags, ...), (path, flags, bits), AT_FDCWD)
OPENS(openat, (int folder, const char *path, int flags, ...), (folder, path, flags, bits), folder)
OPENS(openat64, (int folder, const char *path, int flags, ...), (folder, path, flags, bits), folder)

#define ON_FILE(result, name, parameters, arguments, kind) \
  result name parameters { \
    REAL(name); \
    if (!armed || file < 0 || file >= (int)sizeof below || !below[file]) return real arguments; \
    char link[64], path[PATH_MAX] = ""; \
    snprintf(link, sizeof link, "/proc/self/fd/%d", file); \
    if (readlink(link, path, sizeof path - 1) < 0) path[0] = 0; \
    int what = fate(#name, path, kind); \
    if (what == 2) (void)!real arguments; \
    if (what) errno = error; \
    return what ? -1 : real arguments; \
  }
ON_FILE(ssize_t, write, (int file, const void *data, size_t size), (file, data, size), WRITES)
ON_FILE(ssize_t, pwrite, (int file, const void *data, size_t size, off_t at), (file, data, size, at), WRITES)
ON_FILE(ssize_t, pwrite64, (int file, const void *data, size_t size, off64_t at), (file, data, size, at), WRITES)
ON_FILE(ssize_t, writev, (int file, const struct iovec *data, int count), (file, data, count), WRITES)
ON_FILE(ssize_t, read, (int file, void *data, size_t size), (file, data, size), READS)
ON_FILE(ssize_t, pread, (int file, void *data, size_t size, off_t at), (file, data, size, at), READS)
ON_FILE(ssize_t, pread64, (int file, void *data, size_t size, off64_t at), (file, data, size, at), READS)
ON_FILE(int, fsync, (int file), (file), WRITES)
ON_FILE(int, fdatasync, (int file), (file), WRITES)
ON_FILE(int, ftruncate, (int file, off_t size), (file, size), WRITES)
ON_FILE(int, ftruncate64, (int file, off64_t size), (file, size), WRITES)

int close(int file) {
  REAL(close);
  if (file >= 0 && file < (int)sizeof below) below[file] = 0;
  return real(file);
}

#define ON_PATH(name, parameters, arguments, folder, kind) \
  int name parameters { \
    REAL(name); \
    char full[PATH_MAX]; \
    int what = is_below(folder, path, full) ? fate(#name, full, kind) : 0; \
    if (what == 2) (void)!real arguments; \
    if (what) errno = error; \
    return what ? -1 : real arguments; \
  }
ON_PATH(unlink, (const char *path), (path), AT_FDCWD, TIDIES)
ON_PATH(unlinkat, (int folder, const char *path, int flags), (folder, path, flags), folder, TIDIES)
ON_PATH(rmdir, (const char *path), (path), AT_FDCWD, TIDIES)
ON_PATH(chmod, (const char *path, mode_t bits), (path, bits), AT_FDCWD, TIDIES)
ON_PATH(mkdir, (const char *path, mode_t bits), (path, bits), AT_FDCWD, WRITES)
ON_PATH(rename, (const char *old, const char *path), (old, path), AT_FDCWD, WRITES)
ON_PATH(link, (const char *old, const char *path), (old, path), AT_FDCWD, WRITES)
ON_PATH(linkat, (int from, const char *old, int folder, const char *path, int flags), (from, old, folder, path, flags),
        folder, WRITES)

DIR *opendir(const char *path) {
  REAL(opendir);
  char full[PATH_MAX];
  if (is_below(AT_FDCWD, path, full) && fate("opendir", full, READS)) {
    errno = error;
    return NULL;
  }
  return real(path);
}
