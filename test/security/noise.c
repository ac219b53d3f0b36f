/**
 * What a guest can do all the time without breaking a rule, to take from its neighbours: `noise WHAT SECONDS [WHERE]`.
 * Every loop ends after so many seconds. The last line tells how often it was done, and how often it was refused.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static unsigned long done, refused;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void count(long result) {
  if (result < 0) refused++;
  else done++;
}

static void spin(const char *where) {
  (void)where;
  for (volatile int i = 0; i < 1000000; i++) continue;
  count(0);
}

static void fork_one(const char *where) {
  (void)where;
  pid_t pid = fork();
  if (pid == 0) _exit(0);
  count(pid);
  while (waitpid(-1, NULL, pid < 0 ? 0 : WNOHANG) > 0) continue;
}

/** The engine's socket, without a word. */
static void dial(const char *where) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strncpy(address.sun_path, where, sizeof address.sun_path - 1);
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  count(connect(fd, (void *)&address, sizeof address));
  close(fd);
}

static struct sockaddr_in place(const char *address, uint16_t port) {
  struct sockaddr_in result = {.sin_family = AF_INET, .sin_port = htons(port)};
  inet_pton(AF_INET, address, &result.sin_addr);
  return result;
}

/** Connections without an answer, from port after port. */
static void connect_one(const char *where) {
  struct sockaddr_in address = place(where, 80);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  long result = connect(fd, (void *)&address, sizeof address);
  count(result < 0 && errno == EINPROGRESS ? 0 : result);
  close(fd);
}

static size_t question(uint8_t *bytes, uint16_t id) {
  static const uint8_t rest[] = "\1\0\0\1\0\0\0\0\0\0\6public\7example\0\0\1\0\1";
  bytes[0] = (uint8_t)(id >> 8);
  bytes[1] = (uint8_t)id;
  memcpy(bytes + 2, rest, sizeof rest - 1);
  return sizeof rest + 1;
}

static void ask(const char *where) {
  static int fd = -1;
  uint8_t bytes[64];
  struct sockaddr_in address = place(where, 53);
  if (fd < 0) fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
  count(sendto(fd, bytes, question(bytes, (uint16_t)done), 0, (void *)&address, sizeof address));
}

/** 16 MiB, again and again over itself, to the disk. */
static void write_file(const char *where) {
  static char block[1 << 20];
  int fd = open(where, O_WRONLY | O_CREAT, 0600);
  for (int i = 0; i < 16; i++) count(write(fd, block, sizeof block));
  count(fsync(fd));
  close(fd);
}

/** As small pieces as there are. */
static void write_bytes(const char *where) {
  (void)where;
  count(write(STDOUT_FILENO, "y", 1));
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*act)(const char *where);
  } acts[] = {{"spin", spin}, {"fork", fork_one}, {"dial", dial},        {"connect", connect_one},
              {"dns", ask},   {"disk", write_file}, {"bytes", write_bytes}};
  if (argc < 3) return 2;
  const char *where = argc > 3 ? argv[3] : "";
  for (size_t i = 0; i < sizeof acts / sizeof *acts; i++) {
    if (strcmp(argv[1], acts[i].name)) continue;
    for (double end = now() + atoi(argv[2]); now() < end;) acts[i].act(where);
    fprintf(stderr, "%lu done, %lu refused\n", done, refused);
    return 0;
  }
  return 2;
}
