#include "relay/relay.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "answer.h"
#include "lines.h"
#include "relay/joint.h"
#include "relay/take-socket.h"

enum { EVENTS_AT_ONCE = 64, JOIN_ARGUMENTS = 4 };
/** Minimum interval between reports of caller data: a sandbox is never put to rest this soon after the last one. */
enum { TOLD_AGAIN_MS = 50 };

struct relay {
  int epoll;
  int starter;
  struct joint *joints;
  // Fetched events may still refer to them.
  struct joint *ended;
};

static int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void tell(const struct joint *joint, const char *what) {
  char line[MOST_ID_BYTES + 16];
  int length = snprintf(line, sizeof line, "%s\t%s\n", joint->id, what);
  while (write(STDOUT_FILENO, line, (size_t)length) < 0 && errno == EINTR) continue;
}

static void tell_news(struct joint *joint) {
  if (joint->has_said) {
    int64_t now = now_ms();
    joint->has_said = false;
    if (joint->told_ms == 0 || now - joint->told_ms >= TOLD_AGAIN_MS) {
      joint->told_ms = now;
      tell(joint, "said");
    }
  }
  if (joint->is_over) tell(joint, "over");
}

/** callerDescriptor callerInode guestDescriptor guestInode */
static int join(struct relay *relay, const struct request *request, struct failure *failure) {
  uint32_t numbers[JOIN_ARGUMENTS];
  if (strlen(request->id) >= MOST_ID_BYTES) return fail_with(failure, EINVAL, "the id is too long");
  if (request->argument_count != JOIN_ARGUMENTS) return fail_with(failure, EINVAL, "wrong number of arguments");
  for (size_t index = 0; index < JOIN_ARGUMENTS; index++) {
    if (parse_number(request->arguments[index], 0, UINT32_MAX, &numbers[index], failure) < 0) return -1;
  }
  int caller = take_socket(relay->starter, numbers[0], numbers[1], failure);
  if (caller < 0) return -1;
  int guest = take_socket(relay->starter, numbers[2], numbers[3], failure);
  if (guest < 0) {
    close(caller);
    return -1;
  }
  struct joint *joint = make_joint(relay->epoll, request->id, caller, guest, failure);
  if (joint == NULL) return -1;
  joint->next = relay->joints;
  relay->joints = joint;
  return 0;
}

/** Succeeds when the joint is missing: it may have ended by itself. */
static void end(struct relay *relay, const char *id) {
  for (struct joint **place = &relay->joints; *place != NULL; place = &(*place)->next) {
    struct joint *joint = *place;
    if (strcmp(joint->id, id) != 0) continue;
    *place = joint->next;
    close_joint(relay->epoll, joint);
    joint->is_over = true;
    joint->next = relay->ended;
    relay->ended = joint;
    return;
  }
}

static int carry_out(struct relay *relay, char *line) {
  static struct request request;
  struct failure failure = {0};
  struct answer answer = {0};
  if (parse_request(line, &request, &failure) == 0) {
    if (strcmp(request.call, "end") == 0) {
      end(relay, request.id);
      return 0;
    }
    if (strcmp(request.call, "join") == 0) join(relay, &request, &failure);
    else fail_with(&failure, ENOSYS, "there is no such call");
  }
  return write_answer(request.id == NULL ? "0" : request.id, &answer, &failure);
}

/** Requests are written as whole lines, so this does not block for the rest of one. */
static bool read_lines(struct relay *relay) {
  static struct line_reader reader;
  do {
    char *line = NULL;
    enum line_outcome outcome = read_line(&reader, STDIN_FILENO, &line);
    if (outcome == LINE_END || outcome == LINE_FAILED) return false;
    if (outcome == LINE_READ && carry_out(relay, line) < 0) return false;
  } while (has_line(&reader));
  return true;
}

static void free_all(struct joint **joints) {
  while (*joints != NULL) {
    struct joint *joint = *joints;
    *joints = joint->next;
    free(joint);
  }
}

static void end_all(struct relay *relay) {
  for (struct joint *joint = relay->joints; joint != NULL; joint = joint->next) close_joint(relay->epoll, joint);
  free_all(&relay->joints);
  free_all(&relay->ended);
}

static int serve(struct relay *relay) {
  struct epoll_event events[EVENTS_AT_ONCE];
  for (;;) {
    int count = epoll_wait(relay->epoll, events, EVENTS_AT_ONCE, -1);
    if (count < 0 && errno != EINTR) return 1;
    for (int index = 0; index < count; index++) {
      struct end *end = events[index].data.ptr;
      if (end == NULL) {
        if (!read_lines(relay)) return 0;
        continue;
      }
      if (end->joint->is_over) continue;
      forward(relay->epoll, end, events[index].events);
      tell_news(end->joint);
    }
    free_all(&relay->ended);
  }
}

int relay(void) {
  struct failure failure = {0};
  struct relay relay = {.epoll = epoll_create1(EPOLL_CLOEXEC), .starter = open_starter(&failure)};
  struct epoll_event lines = {.events = EPOLLIN};
  if (relay.starter < 0 || relay.epoll < 0 || epoll_ctl(relay.epoll, EPOLL_CTL_ADD, STDIN_FILENO, &lines) < 0) {
    fprintf(stderr, "svc-host: relay: %s\n", failure.error == 0 ? strerror(errno) : failure.step);
    return 1;
  }
  int outcome = serve(&relay);
  end_all(&relay);
  return outcome;
}
