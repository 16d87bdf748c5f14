/*
 * Loaded before a node (LD_PRELOAD), between it and its disk. Of each file of its database (a name that has ".sqlite" in
 * it, but not ".sqlite-shm", which no crash survives) it keeps in $CAMPAIGN_DISK/NAME.undo what was written since the file
 * was last synced, with what was there before, so that a power cut can be acted out: the process is killed, and what was
 * not synced is taken back, all of it or some. And while the first byte of $CAMPAIGN_DISK/full is 1, the disk is full: a
 * write that makes a file of the database longer fails with ENOSPC; while it is 2, every write does, as where a file
 * system writes nothing in place. While the second byte is 1, each read of a file of the database fails with EIO; while
 * it is 2, only the next read does, and sets the byte back to 0.
 *
 * A record, in the byte order of the machine: kind (1 write, 2 change of length), offset, length of the file before, bytes
 * that were there before, bytes that were written, each 8 bytes; then both. It is written before what it tells of, so the
 * last one may tell of what did not happen, or be cut off. Making and removing a file counts as synced.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define MOST_FILES 256
#define MOST_FDS 65536

struct file {
  char path[PATH_MAX];
  int undo;
  pthread_mutex_t lock;
};

static struct file files[MOST_FILES];
static int file_count;
/* Which file a descriptor is of, plus one. */
static unsigned short file_of[MOST_FDS];
/* Which file of the system that is: Node.js closes by a system call, not by close(), and the number may then be another's. */
static struct {
  dev_t device;
  ino_t inode;
} identity_of[MOST_FDS];
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned char *full;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int (*real_open)(const char *, int, ...);
static int (*real_openat)(int, const char *, int, ...);
static int (*real_close)(int);
static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static ssize_t (*real_read)(int, void *, size_t);
static ssize_t (*real_pread)(int, void *, size_t, off_t);
static int (*real_ftruncate)(int, off_t);
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);
static int (*real_unlink)(const char *);

static void prepare(void) {
  real_open = dlsym(RTLD_NEXT, "open64");
  real_openat = dlsym(RTLD_NEXT, "openat64");
  real_close = dlsym(RTLD_NEXT, "close");
  real_write = dlsym(RTLD_NEXT, "write");
  real_pwrite = dlsym(RTLD_NEXT, "pwrite64");
  real_read = dlsym(RTLD_NEXT, "read");
  real_pread = dlsym(RTLD_NEXT, "pread64");
  real_ftruncate = dlsym(RTLD_NEXT, "ftruncate64");
  real_fsync = dlsym(RTLD_NEXT, "fsync");
  real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
  real_unlink = dlsym(RTLD_NEXT, "unlink");
  const char *dir = getenv("CAMPAIGN_DISK");
  char path[PATH_MAX];
  if (dir != NULL && snprintf(path, sizeof path, "%s/full", dir) < (int)sizeof path) {
    int fd = real_open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0) {
      void *map = mmap(NULL, 2, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
      full = map == MAP_FAILED ? NULL : map;
      real_close(fd);
    }
  }
}

static void ready(void) { pthread_once(&once, prepare); }

static int is_watched(const char *path) {
  return strstr(path, ".sqlite") != NULL && strstr(path, "-shm") == NULL && strstr(path, ".undo") == NULL;
}

static void undo_path(const char *path, char *into, size_t size) {
  const char *name = strrchr(path, '/');
  snprintf(into, size, "%s/%s.undo", getenv("CAMPAIGN_DISK"), name == NULL ? path : name + 1);
}

/* Remembers that a descriptor is of a file that is watched. */
static void watch(int fd, const char *path) {
  char resolved[PATH_MAX], undo[PATH_MAX];
  if (fd < 0 || fd >= MOST_FDS || getenv("CAMPAIGN_DISK") == NULL || !is_watched(path)) {
    return;
  }
  if (realpath(path, resolved) == NULL) {
    return;
  }
  pthread_mutex_lock(&table_lock);
  int i = 0;
  while (i < file_count && strcmp(files[i].path, resolved) != 0) {
    i++;
  }
  if (i == file_count && file_count < MOST_FILES) {
    strcpy(files[i].path, resolved);
    pthread_mutex_init(&files[i].lock, NULL);
    undo_path(resolved, undo, sizeof undo);
    files[i].undo = real_open(undo, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    file_count++;
  }
  struct stat now;
  if (i < file_count && fstat(fd, &now) == 0) {
    identity_of[fd].device = now.st_dev;
    identity_of[fd].inode = now.st_ino;
    file_of[fd] = i + 1;
  } else {
    file_of[fd] = 0;
  }
  pthread_mutex_unlock(&table_lock);
}

static struct file *watched(int fd) {
  struct stat now;
  if (fd < 0 || fd >= MOST_FDS || file_of[fd] == 0 || fstat(fd, &now) != 0) {
    return NULL;
  }
  int is_same = now.st_dev == identity_of[fd].device && now.st_ino == identity_of[fd].inode;
  return is_same ? &files[file_of[fd] - 1] : NULL;
}

/* Ends the process, since a record would be missing, and says why. */
static void give_up(const char *why) {
  dprintf(STDERR_FILENO, "watched-disk: %s: %s\n", why, strerror(errno));
  abort();
}

/* Writes the record of a change of [offset, offset + length), whose new bytes are these; none for a change of length. */
static void record(struct file *file, int fd, uint64_t kind, off_t offset, const void *bytes, size_t length) {
  struct stat now;
  if (fstat(fd, &now) != 0) {
    give_up("fstat");
  }
  off_t end = kind == 1 ? offset + (off_t)length : now.st_size;
  if (end > now.st_size) {
    end = now.st_size;
  }
  size_t old_length = end > offset ? (size_t)(end - offset) : 0;
  char *old = malloc(old_length + 1);
  /* Read by the same descriptor: to close another one of the file would give up the locks that SQLite has on it. */
  if (old == NULL || (old_length > 0 && real_pread(fd, old, old_length, offset) != (ssize_t)old_length)) {
    give_up("reading what is there before");
  }
  uint64_t head[5] = {kind, (uint64_t)offset, (uint64_t)now.st_size, old_length, kind == 1 ? length : 0};
  struct iovec parts[3] = {{head, sizeof head}, {old, old_length}, {(void *)bytes, head[4]}};
  if (writev(file->undo, parts, 3) != (ssize_t)(sizeof head + old_length + head[4])) {
    give_up("writing a record");
  }
  free(old);
}

static int is_too_much(int fd, off_t end) {
  struct stat now;
  return full != NULL && (*full == '2' || (*full == '1' && fstat(fd, &now) == 0 && end > now.st_size));
}

static ssize_t write_at(struct file *file, int fd, const void *bytes, size_t length, off_t offset) {
  if (is_too_much(fd, offset + (off_t)length)) {
    errno = ENOSPC;
    return -1;
  }
  pthread_mutex_lock(&file->lock);
  record(file, fd, 1, offset, bytes, length);
  ssize_t result = real_pwrite(fd, bytes, length, offset);
  pthread_mutex_unlock(&file->lock);
  return result;
}

static int opened(int fd, const char *path) {
  int error = errno;
  watch(fd, path);
  errno = error;
  return fd;
}

#define MODE(flags)                                  \
  mode_t mode = 0;                                   \
  if ((flags) & (O_CREAT | O_TMPFILE)) {             \
    va_list rest;                                    \
    va_start(rest, flags);                           \
    mode = va_arg(rest, mode_t);                     \
    va_end(rest);                                    \
  }

int open(const char *path, int flags, ...) {
  MODE(flags)
  ready();
  return opened(real_open(path, flags, mode), path);
}
int open64(const char *path, int flags, ...) {
  MODE(flags)
  ready();
  return opened(real_open(path, flags, mode), path);
}
int openat(int dir, const char *path, int flags, ...) {
  MODE(flags)
  ready();
  return opened(real_openat(dir, path, flags, mode), path);
}
int openat64(int dir, const char *path, int flags, ...) {
  MODE(flags)
  ready();
  return opened(real_openat(dir, path, flags, mode), path);
}

int close(int fd) {
  ready();
  if (fd >= 0 && fd < MOST_FDS) {
    file_of[fd] = 0;
  }
  return real_close(fd);
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset) {
  ready();
  struct file *file = watched(fd);
  return file == NULL ? real_pwrite(fd, bytes, length, offset) : write_at(file, fd, bytes, length, offset);
}
ssize_t pwrite64(int fd, const void *bytes, size_t length, off_t offset) { return pwrite(fd, bytes, length, offset); }

ssize_t write(int fd, const void *bytes, size_t length) {
  ready();
  struct file *file = watched(fd);
  if (file == NULL) {
    return real_write(fd, bytes, length);
  }
  off_t offset = lseek(fd, 0, SEEK_CUR);
  ssize_t result = write_at(file, fd, bytes, length, offset);
  if (result > 0) {
    lseek(fd, offset + result, SEEK_SET);
  }
  return result;
}

int ftruncate(int fd, off_t length) {
  ready();
  struct file *file = watched(fd);
  if (file == NULL) {
    return real_ftruncate(fd, length);
  }
  if (is_too_much(fd, length)) {
    errno = ENOSPC;
    return -1;
  }
  pthread_mutex_lock(&file->lock);
  record(file, fd, 2, length, NULL, 0);
  int result = real_ftruncate(fd, length);
  pthread_mutex_unlock(&file->lock);
  return result;
}
int ftruncate64(int fd, off_t length) { return ftruncate(fd, length); }

/* Whether a read of this descriptor fails. */
static int is_unreadable(int fd) {
  if (full == NULL || full[1] == '0' || watched(fd) == NULL) {
    return 0;
  }
  if (full[1] == '2') {
    full[1] = '0';
  }
  errno = EIO;
  return 1;
}

ssize_t pread(int fd, void *bytes, size_t length, off_t offset) {
  ready();
  return is_unreadable(fd) ? -1 : real_pread(fd, bytes, length, offset);
}
ssize_t pread64(int fd, void *bytes, size_t length, off_t offset) { return pread(fd, bytes, length, offset); }

ssize_t read(int fd, void *bytes, size_t length) {
  ready();
  return is_unreadable(fd) ? -1 : real_read(fd, bytes, length);
}

static int sync_by(int (*real)(int), int fd) {
  struct file *file = watched(fd);
  if (file == NULL) {
    return real(fd);
  }
  pthread_mutex_lock(&file->lock);
  int result = real(fd);
  if (result == 0 && real_ftruncate(file->undo, 0) != 0) {
    give_up("emptying the records");
  }
  pthread_mutex_unlock(&file->lock);
  return result;
}

int fsync(int fd) {
  ready();
  return sync_by(real_fsync, fd);
}
int fdatasync(int fd) {
  ready();
  return sync_by(real_fdatasync, fd);
}

int unlink(const char *path) {
  ready();
  char resolved[PATH_MAX], undo[PATH_MAX];
  int is_known = getenv("CAMPAIGN_DISK") != NULL && is_watched(path) && realpath(path, resolved) != NULL;
  int result = real_unlink(path);
  if (result == 0 && is_known) {
    undo_path(resolved, undo, sizeof undo);
    if (truncate(undo, 0) != 0 && errno != ENOENT) {
      give_up("emptying the records of a removed file");
    }
  }
  return result;
}
