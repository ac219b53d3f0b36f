#include "wire/dial.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "bounds.h"

enum { TOKEN_BYTES = 32, SESSION_RETRY_MS = 5, WANTED_MAX = 4 * SESSION_CONNECTIONS_MAX };

static char directory[4096], *name;
static int directory_fd = -1;
static uint8_t token[TOKEN_BYTES];
static struct timer redial, retry;
static const struct dialled *control_line, *session_line;
static uint64_t away_since_ms;
static uint32_t last_number;
static unsigned open_count, wanted_count;
static struct conn *open_sessions[SESSION_CONNECTIONS_MAX];

static bool read_token(const char *hex);
static int dial(void);
static void greet(struct conn *, char kind);
static void on_redial(struct timer *);
static void on_retry(struct timer *);

bool dial_init(const struct dialled *control, const struct dialled *session) {
  char *path = getenv("SVC_SOCKET"), *hex = getenv("SVC_TOKEN");
  if (!path || !*path) path = "/.svc/engine.sock";
  if (!hex || !read_token(hex) || path[0] != '/' || strlen(path) >= sizeof directory) return false;
  strcpy(directory, path);
  name = strrchr(directory, '/');
  *name++ = 0;
  // SAFETY: /proc/1/environ shows this memory to every process that may inspect PID 1.
  explicit_bzero(hex, strlen(hex));
  control_line = control;
  session_line = session;
  timer_init(&redial, on_redial);
  timer_init(&retry, on_retry);
  away_since_ms = now_ms();
  on_redial(&redial);
  return true;
}

void dial_sessions(uint64_t count) {
  // Numbers beyond the maximum of open connections are queued, up to a bound, and dialled when others end.
  wanted_count += count < WANTED_MAX ? (unsigned)count : (unsigned)WANTED_MAX;
  if (wanted_count > WANTED_MAX) wanted_count = WANTED_MAX;
  on_retry(&retry);
}

void dial_control_closed(void) {
  wanted_count = 0; // a new engine sends its requests again
  timer_stop(&retry);
  away_since_ms = now_ms();
  timer_start(&redial, REDIAL_FAST_MS);
}

void dial_session_closed(struct conn *conn) {
  for (unsigned i = 0; i < open_count; i++) {
    if (open_sessions[i] != conn) continue;
    open_sessions[i] = open_sessions[--open_count];
    break;
  }
  if (wanted_count) timer_start(&retry, 0);
}

struct conn *dial_find(uint32_t number) {
  for (unsigned i = 0; i < open_count; i++) {
    if (open_sessions[i]->number == number) return open_sessions[i];
  }
  return NULL;
}

static void on_redial(struct timer *timer) {
  int fd = dial();
  struct conn *conn = fd >= 0 ? conn_new(fd, 0, control_line->handler) : NULL;
  if (!conn) {
    bool is_slow = now_ms() - away_since_ms >= REDIAL_SLOW_AFTER_MS;
    return timer_start(timer, is_slow ? REDIAL_SLOW_MS : REDIAL_FAST_MS);
  }
  greet(conn, 'C');
  control_line->opened(conn);
}

static void on_retry(struct timer *timer) {
  while (wanted_count && open_count < SESSION_CONNECTIONS_MAX) {
    int fd = dial();
    struct conn *conn = fd >= 0 ? conn_new(fd, last_number + 1, session_line->handler) : NULL;
    if (!conn) return timer_start(timer, SESSION_RETRY_MS);
    wanted_count--;
    last_number++;
    open_sessions[open_count++] = conn;
    greet(conn, 'S');
    session_line->opened(conn);
  }
}

static void greet(struct conn *conn, char kind) {
  uint8_t preamble[9 + TOKEN_BYTES] = {'S', 'V', 'C', '1', (uint8_t)kind};
  put_u32(preamble + 5, conn->number);
  memcpy(preamble + 9, token, TOKEN_BYTES);
  conn_send(conn, preamble, sizeof preamble);
}

/** A connected socket, or -1. */
static int dial(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  // The folder stays open: when the guest changes the path, the engine is still found in the same folder.
  if (directory_fd < 0) directory_fd = open(*directory ? directory : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (directory_fd < 0 || strlen(name) >= sizeof address.sun_path) return -1;
  strcpy(address.sun_path, name);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  bool ok = !fchdir(directory_fd) && !connect(fd, (struct sockaddr *)&address, sizeof address);
  if (chdir("/") < 0) ok = false;
  if (ok) return fd;
  close(fd);
  return -1;
}

static bool read_token(const char *hex) {
  if (strlen(hex) != 2 * TOKEN_BYTES || strspn(hex, "0123456789abcdefABCDEF") != 2 * TOKEN_BYTES) return false;
  for (int i = 0; i < TOKEN_BYTES; i++) {
    char pair[3] = {hex[2 * i], hex[2 * i + 1], 0};
    token[i] = (uint8_t)strtoul(pair, NULL, 16);
  }
  return true;
}
