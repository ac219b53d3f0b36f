// Feeds random and mutated frames to the real handlers, in process, under AddressSanitizer and UBSan. Started by
// fuzz.test.ts in namespaces of its own: the random frames really open, write, remove and start things.
// Usage: fuzz FRAMES SEED ROOT, where ROOT is an empty folder it may mount over.

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bounds.h"
#include "dispatch/channel.h"
#include "dispatch/control.h"
#include "dispatch/shutdown.h"
#include "loop/children.h"
#include "process/spawn.h"
#include "wire/activity.h"

enum { SEEDS_MAX = 128, LINES = 3 };

struct seed {
  uint8_t *bytes;
  size_t length;
  bool is_control;
};

struct line {
  int fd; // our end
  bool is_control;
  uint8_t pending[FRAME_MAX + 4];
  size_t length, greeting; // greeting: bytes before the first frame
};

static struct seed seeds[SEEDS_MAX];
static size_t seed_count;
static uint64_t state;
static unsigned long shutdowns, answers;
static struct line lines[LINES];

// Replaces dispatch/shutdown.c: a random shutdown must not end the run.
void shutdown_begin(uint64_t grace_ms) { (void)grace_ms, shutdowns++; }
static void on_stop(void) { shutdowns++; }

static uint64_t random_number(uint64_t below) {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return state % below;
}

static void die(const char *what) {
  fprintf(stderr, "fuzz: %s: %s\n", what, strerror(errno));
  exit(3);
}

/** An empty root of our own, with a shell to start and a read-only /proc for the leak check. */
static void enter(const char *root) {
  char path[4096], command[8192];
  if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || mount("none", root, "tmpfs", 0, "size=64m") < 0) die("mount");
  snprintf(path, sizeof path, "%s/proc", root);
  snprintf(command, sizeof command, "mkdir -p %s/bin %s/etc && cp /bin/busybox %s/bin/cat && cp /etc/passwd %s/etc/", root, root,
           root, root);
  if (mkdir(path, 0755) < 0 || system(command) != 0 || mount("proc", path, "proc", MS_RDONLY, NULL) < 0) die("root");
  if (chdir(root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0) die("pivot");
}

static void add_seed(bool is_control, const char *type, struct writer *payload) {
  uint8_t head[ENVELOPE_MAX];
  uint8_t *start = message_head(head + sizeof head, (uint32_t)(1 + seed_count % 7), flags_of(type), type, payload->length, false);
  size_t head_length = (size_t)(head + sizeof head - start);
  struct seed *seed = &seeds[seed_count++];
  *seed = (struct seed){malloc(head_length + payload->length), head_length + payload->length, is_control};
  memcpy(seed->bytes, start, head_length);
  memcpy(seed->bytes + head_length, payload->at, payload->length);
  writer_free(payload);
}

static void seed_file(const char *variant, const char *path, const char *extra, uint64_t value) {
  struct writer payload = writer_new();
  write_map(&payload, 1);
  write_text(&payload, "op");
  write_map(&payload, 1);
  write_text(&payload, variant);
  write_map(&payload, 8);
  write_text_pair(&payload, "path", path);
  write_text_pair(&payload, "src", path);
  write_text_pair(&payload, "dst", "/copy");
  write_text_pair(&payload, "target", path);
  write_text_pair(&payload, "link_path", "/link");
  write_uint_pair(&payload, "handle", value);
  write_uint_pair(&payload, "offset", 0);
  write_text(&payload, extra);
  if (!strcmp(extra, "options")) {
    write_map(&payload, 4);
    for (size_t i = 0; i < 4; i++) write_bool_pair(&payload, (const char *[]){"read", "write", "create", "truncate"}[i], true);
  } else if (!strcmp(extra, "attrs")) {
    write_map(&payload, 2);
    write_uint_pair(&payload, "mode", 0644);
    write_int_pair(&payload, "mtime", -5);
  } else if (!strcmp(extra, "recursive")) {
    write_bool(&payload, true);
  } else {
    write_uint(&payload, 100);
  }
  add_seed(false, "core.fs.request", &payload);
}

static void seed_launch(bool is_control, const char *type, bool tty) {
  struct writer payload = writer_new();
  write_map(&payload, 9);
  write_text_pair(&payload, "key", "k");
  write_text_pair(&payload, "cmd", "cat");
  write_text(&payload, "args");
  write_array(&payload, 1);
  write_text(&payload, "-");
  write_text(&payload, "env");
  write_array(&payload, 1);
  write_text(&payload, "A=B");
  write_text_pair(&payload, "cwd", "/");
  write_text_pair(&payload, "user", "root");
  write_bool_pair(&payload, "tty", tty);
  write_bool_pair(&payload, "stdin", true);
  write_text(&payload, "rlimits");
  write_array(&payload, 1);
  write_map(&payload, 3);
  write_text_pair(&payload, "resource", "nofile");
  write_uint_pair(&payload, "soft", 10);
  write_uint_pair(&payload, "hard", 10);
  add_seed(is_control, type, &payload);
}

static void seed_flat(bool is_control, const char *type) {
  struct writer payload = writer_new();
  write_map(&payload, 15);
  write_text_pair(&payload, "key", "k");
  write_text_pair(&payload, "by", "someone");
  write_bool_pair(&payload, "follow", true);
  write_text(&payload, "data");
  write_bytes(&payload, "some bytes", 10);
  write_uint_pair(&payload, "signal", 15);
  write_uint_pair(&payload, "rows", 10);
  write_uint_pair(&payload, "cols", 10);
  write_text_pair(&payload, "host", "127.0.0.1");
  write_uint_pair(&payload, "port", 9);
  write_uint_pair(&payload, "stdout", 0);
  write_uint_pair(&payload, "stderr", 0);
  write_uint_pair(&payload, "count", 1);
  write_uint_pair(&payload, "connection", 1);
  write_bool_pair(&payload, "oom", true);
  write_bool_pair(&payload, "pids", true);
  add_seed(is_control, type, &payload);
}

static void seed_watch(const char *path, bool recursive) {
  struct writer payload = writer_new();
  write_map(&payload, 2);
  write_text_pair(&payload, "path", path);
  write_bool_pair(&payload, "recursive", recursive);
  add_seed(false, "svc.watch.start", &payload);
}

static void make_seeds(void) {
  static const char *const variants[] = {"RealPath", "Stat",      "SetStat", "List",   "ReadLink", "Symlink", "Mkdir",
                                         "Remove",   "RemoveDir", "Copy",    "Rename", "OpenFile", "OpenDir", "CloseHandle",
                                         "Read",     "Write",     "ReadDir", "FStat",  "FSetStat"};
  static const char *const extras[] = {"options", "attrs", "recursive", "len"};
  static const char *const flat[] = {"core.exec.stdin",     "core.exec.signal",    "core.exec.resize",   "core.fs.data",
                                     "core.tcp.connect",    "core.tcp.data",       "core.tcp.eof",       "core.tcp.close",
                                     "core.ping",           "core.touch",          "core.shutdown",      "core.pong",
                                     "svc.detached.list",   "svc.detached.read",   "svc.detached.stdin", "svc.detached.signal",
                                     "svc.detached.resize", "svc.detached.forget", "svc.watch.stop",     "svc.udp.open",
                                     "svc.udp.data",        "svc.udp.close"};
  static const char *const flat_control[] = {"svc.configure", "svc.dial",           "svc.drop",        "svc.killed.answer",
                                             "svc.shutdown",  "svc.process.attach", "svc.process.ack", "svc.failed.answer"};
  for (size_t i = 0; i < COUNT(variants); i++) {
    seed_file(variants[i], i % 2 ? "/a" : "/d/e", extras[i % 4], 1 + i % 3);
    seed_file(variants[i], "/a", !strcmp(variants[i], "OpenFile") ? "options" : extras[(i + 1) % 4], 1);
  }
  for (size_t i = 0; i < COUNT(flat); i++) seed_flat(false, flat[i]);
  for (size_t i = 0; i < COUNT(flat_control); i++) seed_flat(true, flat_control[i]);
  seed_launch(false, "core.exec.request", false);
  seed_launch(false, "core.exec.request", true);
  seed_launch(true, "svc.process.start", false);
  seed_launch(false, "svc.detached.start", false);
  seed_launch(false, "svc.detached.start", true);
  for (int i = 0; i < 4; i++) seed_watch((const char *[]){"/", "/d", "/a", "/etc"}[i], i % 2 == 0);
  struct writer payload = writer_new(); // a real configuration
  write_map(&payload, 2);
  write_text(&payload, "files");
  write_array(&payload, 1);
  write_map(&payload, 3);
  write_text_pair(&payload, "path", "/x/y");
  write_text(&payload, "data");
  write_bytes(&payload, "z", 1);
  write_uint_pair(&payload, "mode", 0600);
  write_text_pair(&payload, "path_prefix", "/bin");
  add_seed(true, "svc.configure", &payload);
}

static void mutate(uint8_t *frame, size_t *length) {
  for (uint64_t times = random_number(4); times > 0; times--) {
    size_t body = *length - 4, at = 4 + (size_t)random_number(body ? body : 1);
    switch (random_number(6)) {
      case 0: frame[at] ^= (uint8_t)(1 << random_number(8)); break;
      case 1: frame[at] = (uint8_t)random_number(256); break;
      case 2: *length = at > 9 ? at : 9; break; // cut
      case 3:                                   // a byte more
        memmove(frame + at + 1, frame + at, *length - at);
        frame[at] = (uint8_t)random_number(256);
        ++*length;
        break;
      case 4: { // a piece of another frame
        const struct seed *other = &seeds[random_number(seed_count)];
        size_t piece = (size_t)random_number(other->length);
        size_t room = *length - at < piece ? *length - at : piece;
        memcpy(frame + at, other->bytes, room);
        break;
      }
      default: { // a hostile length or number
        static const uint8_t heads[] = {0x1b, 0x3b, 0x5b, 0x7b, 0x9b, 0xbb, 0x5f, 0x7f, 0x9f, 0xbf, 0xff, 0xdb};
        frame[at] = heads[random_number(sizeof heads)];
        for (size_t i = at + 1; i < *length && i < at + 9; i++) frame[i] = random_number(2) ? 0xff : 0;
      }
    }
  }
  put_u32(frame, (uint32_t)(*length - 4));
  if (random_number(2000) == 0) put_u32(frame, (uint32_t)state); // a length that lies
}

static void open_line(struct line *line) {
  int fds[2];
  static uint32_t number;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) < 0) die("socketpair");
  line->fd = fds[0];
  line->length = 0;
  line->greeting = line->is_control ? 0 : 8;
  const struct dialled *dialled = line->is_control ? &control_line : &channel_line;
  struct conn *conn = conn_new(fds[1], line->is_control ? 0 : ++number, dialled->handler);
  if (!conn) die("connection");
  dialled->opened(conn);
}

/** Every byte that comes back must be part of a well-formed frame. False: the connection has ended. */
static bool check_answers(struct line *line) {
  for (;;) {
    ssize_t got = recv(line->fd, line->pending + line->length, sizeof line->pending - line->length, 0);
    if (got <= 0) return got < 0 && errno == EAGAIN;
    line->length += (size_t)got;
    size_t at = line->greeting < line->length ? line->greeting : line->length;
    line->greeting -= at;
    while (line->length - at >= 4) {
      struct message message;
      size_t frame = get_u32(line->pending + at);
      if (frame < FRAME_MIN || frame > FRAME_MAX) abort();
      if (line->length - at < 4 + frame) break;
      if (!message_read(&message, line->pending + at + 4, frame)) abort();
      answers++;
      at += 4 + frame;
    }
    memmove(line->pending, line->pending + at, line->length - at);
    line->length -= at;
  }
}

/** A loop with a task in its queue does not wait. */
static void on_tick(struct task *task) { task_queue(task); }

static void turn(void) { loop_turn(conns_settle); }

int main(int count, char **arguments) {
  static uint8_t frame[FRAME_MAX];
  if (count != 4 || getpid() != 1) return fputs("usage: fuzz FRAMES SEED ROOT, as PID 1 of a new namespace\n", stderr), 2;
  unsigned long frames = strtoul(arguments[1], NULL, 10);
  state = strtoull(arguments[2], NULL, 10) | 1;
  enter(arguments[3]);
  setenv("SVC_TOKEN", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", 1);
  activity_init();
  loop_init();
  children_init(on_stop);
  spawn_init();
  if (!dial_init(&control_line, &channel_line)) die("dial");
  make_seeds();
  static struct task tick;
  task_init(&tick, on_tick);
  task_queue(&tick);
  for (int i = 0; i < LINES; i++) lines[i].is_control = i == 0, open_line(&lines[i]);
  for (unsigned long i = 0; i < frames; i++) {
    const struct seed *seed = &seeds[random_number(seed_count)];
    // Starting processes is slow under the sanitizers: fewer of those.
    while (seed->length > 60 && memmem(seed->bytes, seed->length, "cat", 3) && random_number(8))
      seed = &seeds[random_number(seed_count)];
    struct line *line = seed->is_control ? &lines[0] : &lines[1 + random_number(LINES - 1)];
    size_t length = seed->length;
    memcpy(frame, seed->bytes, length);
    if (random_number(20) == 0) { // nothing but noise
      length = 9 + (size_t)random_number(200);
      for (size_t at = 4; at < length; at++) frame[at] = (uint8_t)random_number(256);
    }
    mutate(frame, &length);
    size_t first = 1 + (size_t)random_number(length); // in two pieces
    if (send(line->fd, frame, first, MSG_NOSIGNAL) == (ssize_t)first && first < length) {
      if (random_number(4) == 0) turn();
      (void)!send(line->fd, frame + first, length - first, MSG_NOSIGNAL);
    }
    turn();
    bool is_open = check_answers(line);
    if (is_open && random_number(500)) continue;
    close(line->fd);
    turn();
    open_line(line);
  }
  for (int i = 0; i < LINES; i++) close(lines[i].fd);
  kill(-1, SIGKILL);
  for (int i = 0; i < 2000; i++) turn();
  for (size_t i = 0; i < seed_count; i++) free(seeds[i].bytes);
  printf("%lu frames, %lu answers, %lu shutdowns asked for\n", frames, answers, shutdowns);
  return 0;
}
