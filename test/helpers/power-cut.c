/*
 * Loaded before a process (LD_PRELOAD): keeps, in the directory POWER_CUT_TO, what a disk that loses its power now would
 * have of the directory POWER_CUT_FROM: of each file what it held when it was synced last, and no more; a file that was
 * removed is gone once the directory was synced.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static const char *from_directory, *to_directory;

/* The last part of the name of a file of the directory; empty for the directory itself, NULL for all others. */
static const char *name_of(int fd, char *path, size_t size) {
  char link[64];
  from_directory = getenv("POWER_CUT_FROM");
  to_directory = getenv("POWER_CUT_TO");
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, size - 1);
  if (from_directory == NULL || to_directory == NULL || length <= 0) {
    return NULL;
  }
  path[length] = 0;
  size_t parent = strlen(from_directory);
  if (strncmp(path, from_directory, parent) != 0) {
    return NULL;
  }
  const char *rest = path + parent;
  return *rest == 0 ? rest : *rest == '/' && strchr(rest + 1, '/') == NULL ? rest + 1 : NULL;
}

/* Copies a file as a whole: under its name there is what it was, or what it is now. */
static void keep(const char *path, const char *name) {
  char kept[PATH_MAX], draft[PATH_MAX + 64], bytes[65536];
  snprintf(kept, sizeof kept, "%s/%s", to_directory, name);
  /* Beside the directory, which has nothing but what is kept. */
  snprintf(draft, sizeof draft, "%s.%d-%d", to_directory, (int)getpid(), (int)gettid());
  int source = open(path, O_RDONLY | O_CLOEXEC);
  int copy = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  ssize_t got = -1;
  while (source >= 0 && copy >= 0 && (got = read(source, bytes, sizeof bytes)) > 0) {
    if (write(copy, bytes, got) != got) {
      abort();
    }
  }
  close(source);
  close(copy);
  if (got == 0) {
    rename(draft, kept);
  } else {
    unlink(draft);
  }
}

/* Removes what is not in the directory any more. */
static void forget_removed(void) {
  DIR *directory = opendir(to_directory);
  struct dirent *entry;
  while (directory != NULL && (entry = readdir(directory)) != NULL) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", from_directory, entry->d_name);
    if (access(path, F_OK) != 0) {
      snprintf(path, sizeof path, "%s/%s", to_directory, entry->d_name);
      unlink(path);
    }
  }
  if (directory != NULL) {
    closedir(directory);
  }
}

static int synced(int fd, int result) {
  char path[PATH_MAX];
  struct stat state;
  const char *name = result == 0 && fstat(fd, &state) == 0 ? name_of(fd, path, sizeof path) : NULL;
  if (name != NULL && *name == 0) {
    forget_removed();
  } else if (name != NULL && S_ISREG(state.st_mode)) {
    keep(path, name);
  }
  return result;
}

int fsync(int fd) {
  int (*real)(int) = dlsym(RTLD_NEXT, "fsync");
  return synced(fd, real(fd));
}

int fdatasync(int fd) {
  int (*real)(int) = dlsym(RTLD_NEXT, "fdatasync");
  return synced(fd, real(fd));
}
