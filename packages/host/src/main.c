/**
 * svc-host: makes kernel calls that the engine cannot make itself. One request per line on stdin, one answer per line on stdout;
 * see README.md. Ends at EOF of stdin. Options select other modes: --serve-folder serves one folder, --confine executes a program
 * without rights, --seclude one that accepts connections, --mark-opaque marks folders of an unpacked layer, --listen opens a socket
 * and executes the program that uses it.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "calls.h"
#include "confine/confine.h"
#include "confine/mark-opaque.h"
#include "confine/seclude.h"
#include "lines.h"
#include "listen.h"
#include "overlay.h"
#include "serve/serve-folder.h"
#include "slow-call.h"
#include "spawn.h"

/** Not used by any client: answers requests without a readable id. */
static const char NO_ID[] = "0";

static int answer_request(char *line) {
  static struct request request;
  struct failure failure = {0};
  struct answer answer = {0};
  if (parse_request(line, &request, &failure) == 0) {
    if (start_slow_call(&request)) return 0;
    run_call(&request, &answer, &failure);
    if (answer.is_deferred) return 0;
  }
  return write_answer(request.id == NULL ? NO_ID : request.id, &answer, &failure);
}

static int refuse_long_line(void) {
  struct failure failure = {0};
  struct answer answer = {0};
  fail_with(&failure, E2BIG, "the request line is too long");
  return write_answer(NO_ID, &answer, &failure);
}

/** Ends at EOF of stdin only, so that no call is interrupted. */
static void pass_by(int signal) { (void)signal; }

/**
 * SAFETY: service managers send these signals to all processes of a service. The helper must survive them to thaw a frozen file system.
 * Handled instead of ignored, because launched programs would inherit the latter.
 */
static void stay_until_the_end(void) {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGTERM, pass_by);
  signal(SIGINT, pass_by);
  signal(SIGHUP, pass_by);
}

static int serve(void) {
  static struct line_reader reader;
  for (;;) {
    char *line = NULL;
    switch (read_line(&reader, STDIN_FILENO, &line)) {
      case LINE_READ:
        if (answer_request(line) < 0) return 1;
        break;
      case LINE_TOO_LONG:
        if (refuse_long_line() < 0) return 1;
        break;
      case LINE_END:
        // Running slow calls and launches are finished and answered; the process ends with the last of them.
        pthread_exit(NULL);
      case LINE_FAILED: return 1;
    }
  }
}

int main(int count, char **arguments) {
  if (count > 2 && strcmp(arguments[1], "--serve-folder") == 0) return serve_folder(count - 2, arguments + 2);
  if (count > 2 && strcmp(arguments[1], "--confine") == 0) return confine(count - 2, arguments + 2);
  if (count > 2 && strcmp(arguments[1], "--seclude") == 0) return seclude(count - 2, arguments + 2);
  if (count == 3 && strcmp(arguments[1], "--mark-opaque") == 0) return mark_opaque(arguments[2]);
  if (count > 2 && strcmp(arguments[1], "--listen") == 0) return listen_and_become(count - 2, arguments + 2);
  if (count == 2 && strcmp(arguments[1], "--overlay-by-names") == 0) {
    overlay_by_names_only = true;
  } else if (count != 1) {
    fputs("usage: svc-host [--overlay-by-names]\n", stderr);
    return 2;
  }
  // SAFETY: files of this program are for root only, under any inherited umask.
  inherited_umask = umask(077);
  stay_until_the_end();
  return serve();
}
