#include "net/udp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bounds.h"
#include "loop/descriptors.h"
#include "wire/activity.h"
#include "wire/session.h"

enum { BURST = 16, RECEIVE_BUFFER = 1024 * 1024 };

static unsigned unyielded; // datagrams sent since the last sched_yield

// Nothing is queued here: datagrams that the service does not take, or the peer does not read, are lost, as usual with UDP.
struct udp {
  struct session session;
  struct watch socket;
};

static void on_readable(struct watch *, uint32_t events);
static void on_room(struct session *);
static void on_gone(struct session *, enum conn_end);
static void destroy(struct udp *);

static const struct session_kind kind = {on_room, on_gone};

static void send_failed(struct conn *conn, uint32_t id, const char *message) {
  struct writer payload = writer_new();
  write_map(&payload, 1);
  write_text_pair(&payload, "error", message);
  if (!conn_answer(conn, id, FLAG_TERMINAL, "svc.udp.failed", &payload)) conn_end(conn, CONN_LOST);
}

/** Connected, so that only datagrams of the service are received. -1 with errno on failure. */
static int open_socket(uint16_t port) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd >= 0 && is_reserved_fd(fd)) {
    close(fd);
    errno = EMFILE;
    return -1;
  }
  int wanted = RECEIVE_BUFFER; // the kernel clamps it to what this host allows
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &wanted, sizeof wanted);
  if (fd >= 0 && connect(fd, (const struct sockaddr *)&to, sizeof to) < 0) {
    int error = errno;
    close(fd);
    errno = error;
    return -1;
  }
  return fd;
}

void udp_open(struct conn *conn, struct message *message) {
  static const struct field fields[] = {{"port", field_uint, 0, true}};
  struct arena none = {0};
  uint64_t port = 0;
  if (session_find(conn, message->id, NULL)) return conn_error(conn, message->id, "invalid_session", "this id is in use", NULL);
  if (!read_fields(&message->payload, &none, fields, 1, &port) || port < 1 || port > UINT16_MAX) {
    message->payload.bad = true;
    return;
  }
  if (!conn_take_slot(conn)) return send_failed(conn, message->id, "too many handles and streams are open; close some first");
  struct udp *udp = calloc(1, sizeof *udp);
  int fd = udp ? open_socket((uint16_t)port) : -1;
  if (fd < 0 || !watch_add(&udp->socket, fd, EPOLLIN, on_readable)) {
    const char *reason = udp && fd < 0 ? strerror(errno) : "out of memory";
    if (fd >= 0) close(fd);
    free(udp);
    conn_give_slot(conn);
    return send_failed(conn, message->id, reason);
  }
  session_open(&udp->session, conn, message->id, &kind);
  conn_answer_empty(conn, message->id, 0, "svc.udp.opened");
}

static struct udp *find(struct conn *conn, uint32_t id) {
  struct session *session = session_find(conn, id, &kind);
  return session ? containing(session, struct udp, session) : NULL;
}

void udp_data(struct conn *conn, struct message *message) {
  struct span data = {0};
  if (!message_data(message, &data)) return;
  struct udp *udp = find(conn, message->id);
  if (!udp) return send_failed(conn, message->id, "unknown UDP session");
  // The first send after a refusal only reports the refusal.
  if (send(udp->socket.fd, data.at, data.length, 0) < 0 && errno == ECONNREFUSED)
    (void)!send(udp->socket.fd, data.at, data.length, 0);
  // The receive buffer of a service holds some hundred datagrams, and overflows silently. A burst forwarded in one go
  // would be lost to a service that shares our CPU before it has read the first of it.
  if (++unyielded < BURST) return;
  unyielded = 0;
  sched_yield();
}

void udp_close(struct conn *conn, struct message *message) {
  struct udp *udp = find(conn, message->id);
  if (udp) destroy(udp);
}

static void on_readable(struct watch *watch, uint32_t events) {
  struct udp *udp = containing(watch, struct udp, socket);
  struct session *session = &udp->session;
  (void)events;
  for (int i = 0; i < BURST; i++) {
    if (!conn_has_room(session->conn)) return watch_want(watch, 0);
    ssize_t got = recv(watch->fd, scratch(), TCP_CHUNK, 0);
    // Nothing more to read, or a refusal because the port has no listener, which may still come.
    if (got < 0) return;
    activity();
    conn_send_data(session->conn, session->id, "svc.udp.data", scratch(), (size_t)got);
  }
}

static void on_room(struct session *session) { watch_want(&containing(session, struct udp, session)->socket, EPOLLIN); }

static void on_gone(struct session *session, enum conn_end end) {
  (void)end;
  destroy(containing(session, struct udp, session));
}

static void destroy(struct udp *udp) {
  watch_close(&udp->socket);
  conn_give_slot(udp->session.conn);
  session_close(&udp->session);
  free(udp);
}
