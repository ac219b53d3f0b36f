#include "process/count.h"

#include <ctype.h>
#include <dirent.h>
#include <stddef.h>

#include "bounds.h"
#include "wire/activity.h"

uint64_t count_processes(void) {
  // Listing them takes a hundred times as long in gVisor.
  if (is_alone()) return 1;
  uint64_t count = 0;
  DIR *folder = opendir("/proc");
  if (!folder) return 1;
  for (struct dirent *entry; count < COUNTED_MAX && (entry = readdir(folder));)
    if (isdigit((unsigned char)entry->d_name[0])) count++;
  closedir(folder);
  return count;
}
