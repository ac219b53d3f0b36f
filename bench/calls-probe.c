/**
 * How long system calls take: `calls-probe MILLISECONDS`. For so long it asks for its parent and for a file in turn, and then prints the
 * median and the mean of each, in nanoseconds: `getppid 800 950` and `stat 4000 4800`.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/** More than one call, so that the clock does not count; few enough that a pause falls into few of them. */
enum { CALLS = 10, MOST_SAMPLES = 1 << 16 };

struct samples {
  const char *name;
  size_t count;
  double sum;
  double values[MOST_SAMPLES];
};

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void get_parent(void) { syscall(SYS_getppid); }

static void get_status(void) {
  struct stat status;
  if (stat("/bin", &status) != 0) exit(1);
}

static void take(struct samples *samples, void (*call)(void)) {
  double begun = now();
  for (int i = 0; i < CALLS; i++) call();
  double each = (now() - begun) / CALLS;
  samples->sum += each;
  samples->values[samples->count++] = each;
}

static int compare(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

static void print(struct samples *samples) {
  qsort(samples->values, samples->count, sizeof *samples->values, compare);
  printf("%s %.0f %.0f\n", samples->name, samples->values[samples->count / 2], samples->sum / (double)samples->count);
}

int main(int count, char **words) {
  static struct samples parents = {.name = "getppid"}, files = {.name = "stat"};
  double end = now() + (count > 1 ? atof(words[1]) : 0) * 1e6;
  do {
    take(&parents, get_parent);
    take(&files, get_status);
  } while (now() < end && parents.count < MOST_SAMPLES);
  print(&parents);
  print(&files);
}
