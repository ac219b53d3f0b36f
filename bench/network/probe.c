/**
 * Both ends of what bench/network.ts measures:
 *   serve ADDRESS PORT          sends back what each connection sends
 *   turns ADDRESS PORT COUNT    so many exchanges of 32 bytes over one connection, each in microseconds
 *   ask ADDRESS COUNT WINDOW    so many questions for a name over one socket, WINDOW at a time, each in microseconds
 * Exchanges happen on one CPU: where the other end happens to run would decide more than what is measured.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { TURN_BYTES = 32, BLOCK_BYTES = 4096, MAX_WINDOW = 256, TIMEOUT_SECONDS = 20 };
static char block[BLOCK_BYTES];

static double now_us(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static void fail(const char *step) {
  perror(step);
  exit(1);
}

/** Where it may not, it goes on where it is. */
static void stay_on_one_cpu(void) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(0, &cpus);
  if (sched_setaffinity(0, sizeof cpus, &cpus) < 0) return;
}

static struct sockaddr_in place(const char *address, int port) {
  struct sockaddr_in result = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  if (inet_pton(AF_INET, address, &result.sin_addr) != 1) fail("address");
  return result;
}

static int dial(const char *address, int port, int kind) {
  struct sockaddr_in peer = place(address, port);
  int fd = socket(AF_INET, kind, 0), on = 1;
  struct timeval timeout = {.tv_sec = TIMEOUT_SECONDS};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
  if (connect(fd, (void *)&peer, sizeof peer) < 0) fail("connect");
  if (kind == SOCK_STREAM) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

static void send_all(int fd, const char *bytes, size_t length) {
  for (ssize_t sent; length > 0; bytes += sent, length -= (size_t)sent)
    if ((sent = send(fd, bytes, length, MSG_NOSIGNAL)) <= 0) fail("send");
}

static void read_all(int fd, char *bytes, size_t length) {
  for (ssize_t got; length > 0; bytes += got, length -= (size_t)got)
    if ((got = recv(fd, bytes, length, 0)) <= 0) fail("receive");
}

static void answer(int fd) {
  ssize_t got;
  stay_on_one_cpu();
  while ((got = recv(fd, block, sizeof block, 0)) > 0) send_all(fd, block, (size_t)got);
}

static void serve(const char *address, int port) {
  struct sockaddr_in own = place(address, port);
  int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(listener, (void *)&own, sizeof own) < 0 || listen(listener, 128) < 0) fail("listen");
  signal(SIGCHLD, SIG_IGN);
  puts("ready");
  fflush(stdout);
  for (;;) {
    int fd = accept(listener, NULL, NULL);
    if (fd < 0) continue;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (fork() == 0) {
      answer(fd);
      _exit(0);
    }
    close(fd);
  }
}

static void turn(int fd) {
  char bytes[TURN_BYTES] = {0};
  send_all(fd, bytes, sizeof bytes);
  read_all(fd, bytes, sizeof bytes);
}

static void turns(const char *address, int port, int count) {
  stay_on_one_cpu();
  int fd = dial(address, port, SOCK_STREAM);
  for (int i = 0; i < 50; i++) turn(fd);
  for (int i = 0; i < count; i++) {
    double begun = now_us();
    turn(fd);
    printf("%.2f\n", now_us() - begun);
  }
}

/** A, IN, for public.example. */
static const char question[] = "\0\0\1\0\0\1\0\0\0\0\0\0\6public\7example\0\0\1\0\1";

static void ask(const char *address, int count, int window) {
  static double asked[65536];
  int fd = dial(address, 53, SOCK_DGRAM);
  char bytes[512];
  if (window > MAX_WINDOW || count > 65535) exit(2);
  for (int sent = 0, answered = 0; answered < count;) {
    while (sent < count && sent - answered < window) {
      memcpy(bytes, question, sizeof question - 1);
      bytes[0] = (char)(sent >> 8);
      bytes[1] = (char)sent;
      asked[sent++] = now_us();
      if (send(fd, bytes, sizeof question - 1, 0) < 0) fail("ask");
    }
    if (recv(fd, bytes, sizeof bytes, 0) < 12) fail("hear an answer");
    if ((bytes[3] & 15) != 0) exit(3);
    printf("%.2f\n", now_us() - asked[(uint8_t)bytes[0] << 8 | (uint8_t)bytes[1]]);
    answered++;
  }
}

int main(int count, char **words) {
  if (count < 4) return 2;
  int number = count > 4 ? atoi(words[4]) : 0;
  if (strcmp(words[1], "serve") == 0) serve(words[2], atoi(words[3]));
  else if (strcmp(words[1], "turns") == 0) turns(words[2], atoi(words[3]), number);
  else if (strcmp(words[1], "ask") == 0) ask(words[2], atoi(words[3]), number);
  else return 2;
  return 0;
}
